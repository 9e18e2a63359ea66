use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::oracle::Verdict;
use super::row::{Expects, Fault};

/// More than this is a leak: a worker at rest has about 25 MB.
const RESIDENT_LIMIT_MB: u64 = 300;

/// What came of one row.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RowReport {
    pub id: String,
    pub what: String,
    pub faults: BTreeMap<Fault, Count>,
    pub events: u64,
    pub deliveries: u64,
    pub duplicates_skipped: u64,
    pub redeliveries: u64,
    pub takeovers: u64,
    #[serde(flatten)]
    pub verdict: Verdict,
    pub idle_transactions: u64,
    pub resident_mb: u64,
    pub recovery_p50_ms: u64,
    pub recovery_p99_ms: u64,
    pub recovery_max_ms: u64,
    pub seconds: f64,
    /// Taken over, and not run.
    pub from_earlier_run: bool,
    /// Why it failed; empty if it did not.
    pub blame: Vec<String>,
    #[serde(skip)]
    pub recoveries: Vec<Duration>,
}

/// How often a fault was asked for, done, and seen.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Count {
    pub asked: u64,
    pub injected: u64,
    pub observed: u64,
}

/// All rows.
#[derive(Debug, Serialize)]
pub struct Summary {
    experiment: &'static str,
    size: &'static str,
    /// Of each kind, how many were observed.
    #[serde(flatten)]
    observed: BTreeMap<Fault, u64>,
    /// COMMITs of which the worker could not know whether they were done.
    unknown_commits: u64,
    events: u64,
    deliveries: u64,
    duplicates_skipped: u64,
    takeovers: u64,
    #[serde(flatten)]
    verdict: Verdict,
    failed_rows: Vec<String>,
    seconds: f64,
    rows: Vec<RowReport>,
}

impl RowReport {
    pub fn failed(&self) -> bool {
        !self.blame.is_empty()
    }

    /// Adds why the row fails, if it does: what is broken, and what did not happen often enough to tell.
    pub fn judge(&mut self, expects: Expects) {
        let mut reasons = Vec::new();
        for (fault, count) in &self.faults {
            if count.observed < count.asked {
                reasons.push(format!("{fault:?}: {} of {} observed", count.observed, count.asked));
            }
        }
        for (wrong, reason) in [
            (self.deliveries == 0, "nothing was delivered"),
            (expects.duplicates && self.redeliveries == 0, "no record came again"),
            (expects.takeovers && self.takeovers == 0, "no partition changed hands unasked"),
            (expects.no_redelivery && self.redeliveries > 0, "records came again after a clean end"),
            (self.idle_transactions > 0, "transactions were left open"),
            (self.resident_mb > RESIDENT_LIMIT_MB, "a worker grew without bound"),
            (self.verdict.breaches() > 0, "a promise was broken"),
        ] {
            if wrong {
                reasons.push(reason.to_owned());
            }
        }
        reasons.append(&mut self.verdict.examples);
        self.blame.splice(0..0, reasons);
    }

    fn recovery(&self) -> String {
        match self.recovery_max_ms {
            0 => "not measured".to_owned(),
            worst => format!("at worst {:.1} s", Duration::from_millis(worst).as_secs_f64()),
        }
    }

    /// Puts recoveries into figures.
    pub fn sum_up(&mut self) {
        self.recoveries.sort();
        let at = |percent: usize| {
            let index = (self.recoveries.len() * percent / 100).min(self.recoveries.len().saturating_sub(1));
            self.recoveries.get(index).map_or(0, |span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
        };
        (self.recovery_p50_ms, self.recovery_p99_ms, self.recovery_max_ms) = (at(50), at(99), at(100));
    }
}

impl Summary {
    pub fn new(size: &'static str, rows: Vec<RowReport>) -> Self {
        let sum = |figure: fn(&RowReport) -> u64| rows.iter().map(figure).sum();
        let mut observed: BTreeMap<Fault, u64> = BTreeMap::new();
        for (fault, count) in rows.iter().flat_map(|row| &row.faults) {
            *observed.entry(*fault).or_default() += count.observed;
        }
        let mut verdict = Verdict::default();
        for row in &rows {
            verdict += row.verdict.clone();
        }
        let unknown = [Fault::CommitsDoneUnheard, Fault::CommitsUndone];
        Self {
            experiment: "faults",
            size,
            unknown_commits: unknown.iter().filter_map(|fault| observed.get(fault)).sum(),
            observed,
            events: sum(|row| row.events),
            deliveries: sum(|row| row.deliveries),
            duplicates_skipped: sum(|row| row.duplicates_skipped),
            takeovers: sum(|row| row.takeovers),
            verdict,
            failed_rows: rows.iter().filter(|row| row.failed()).map(|row| row.id.clone()).collect(),
            seconds: rows.iter().map(|row| row.seconds).sum(),
            rows,
        }
    }

    pub fn failed(&self) -> bool {
        !self.failed_rows.is_empty()
    }
}

impl fmt::Display for RowReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = |figure: fn(&Count) -> u64| {
            let figures: Vec<_> = self.faults.values().map(|count| figure(count).to_string()).collect();
            figures.join("+")
        };
        write!(
            f,
            "{:4} {:46} asked {}, injected {}, observed {}; deliveries {}, duplicates skipped {}, takeovers {}; \
             {}; recovery {}; {:.0} s: {}{}",
            self.id,
            self.what,
            counts(|count| count.asked),
            counts(|count| count.injected),
            counts(|count| count.observed),
            self.deliveries,
            self.duplicates_skipped,
            self.takeovers,
            self.verdict,
            self.recovery(),
            self.seconds,
            if self.failed() { "FAILED" } else { "ok" },
            if self.from_earlier_run { " (from an earlier run)" } else { "" },
        )?;
        for reason in &self.blame {
            write!(f, "\n       {reason}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let observed: Vec<_> =
            self.observed.iter().map(|(fault, times)| format!("{fault:?} {times}")).collect();
        writeln!(f, "{}", observed.join(", "))?;
        write!(
            f,
            "{}; {} of {} rows failed; {:.0} s",
            self.verdict,
            self.failed_rows.len(),
            self.rows.len(),
            self.seconds,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten kills were asked for and seen, and nothing is wrong.
    fn good() -> RowReport {
        let faults = BTreeMap::from([(Fault::Kills, Count { asked: 10, injected: 12, observed: 10 })]);
        RowReport { faults, deliveries: 100, redeliveries: 5, takeovers: 1, ..RowReport::default() }
    }

    fn fails(change: impl FnOnce(&mut RowReport)) -> bool {
        fails_where(Expects { duplicates: true, takeovers: true, no_redelivery: false }, change)
    }

    fn fails_where(expects: Expects, change: impl FnOnce(&mut RowReport)) -> bool {
        let mut report = good();
        change(&mut report);
        report.judge(expects);
        report.failed()
    }

    #[test]
    fn a_row_in_which_all_happened_and_nothing_broke_passes() {
        assert!(!fails(|_| {}));
    }

    #[test]
    fn a_row_that_saw_fewer_faults_than_asked_fails() {
        assert!(fails(|report| {
            report.faults.insert(Fault::Kills, Count { asked: 10, injected: 12, observed: 9 });
        }));
    }

    #[test]
    fn duplicates_that_the_load_wrote_do_not_show_that_records_came_again() {
        assert!(fails(|report| (report.redeliveries, report.duplicates_skipped) = (0, 5)));
    }

    #[test]
    fn a_row_in_which_no_partition_changed_hands_proves_nothing() {
        assert!(fails(|report| report.takeovers = 0));
    }

    #[test]
    fn a_record_that_comes_again_after_a_clean_end_fails_the_row() {
        let clean = Expects { no_redelivery: true, ..Expects::default() };
        assert!(!fails_where(clean, |report| report.redeliveries = 0));
        assert!(fails_where(clean, |report| report.redeliveries = 1));
    }

    #[test]
    fn a_broken_promise_fails_the_row() {
        assert!(fails(|report| report.verdict.lost = 1));
    }
}
