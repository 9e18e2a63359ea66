use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::row::Fault;

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
    pub lost: u64,
    pub unparked: u64,
    pub applied_twice: u64,
    pub out_of_order: u64,
    pub dead_and_applied: u64,
    pub wrongly_dead: u64,
    pub unbalanced: u64,
    pub early_offsets: u64,
    pub stuck: u64,
    pub idle_transactions: u64,
    pub resident_mb: u64,
    pub recovery_p50_ms: u64,
    pub recovery_p99_ms: u64,
    pub recovery_max_ms: u64,
    pub seconds: f64,
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
    events: u64,
    deliveries: u64,
    duplicates_skipped: u64,
    takeovers: u64,
    lost: u64,
    applied_twice: u64,
    out_of_order: u64,
    dead_and_applied: u64,
    stuck: u64,
    failed_rows: Vec<String>,
    seconds: f64,
    rows: Vec<RowReport>,
}

impl RowReport {
    /// How often a promise was broken.
    pub fn breaches(&self) -> u64 {
        self.lost
            + self.unparked
            + self.applied_twice
            + self.out_of_order
            + self.dead_and_applied
            + self.wrongly_dead
            + self.unbalanced
            + self.early_offsets
            + self.stuck
    }

    pub fn failed(&self) -> bool {
        !self.blame.is_empty()
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
        Self {
            experiment: "faults",
            size,
            observed,
            events: sum(|row| row.events),
            deliveries: sum(|row| row.deliveries),
            duplicates_skipped: sum(|row| row.duplicates_skipped),
            takeovers: sum(|row| row.takeovers),
            lost: sum(|row| row.lost),
            applied_twice: sum(|row| row.applied_twice),
            out_of_order: sum(|row| row.out_of_order),
            dead_and_applied: sum(|row| row.dead_and_applied),
            stuck: sum(|row| row.stuck),
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
             lost {}, twice {}, out of order {}, dead and applied {}, stuck {}; recovery {}; {:.0} s: {}",
            self.id,
            self.what,
            counts(|count| count.asked),
            counts(|count| count.injected),
            counts(|count| count.observed),
            self.deliveries,
            self.duplicates_skipped,
            self.takeovers,
            self.lost,
            self.applied_twice,
            self.out_of_order,
            self.dead_and_applied,
            self.stuck,
            self.recovery(),
            self.seconds,
            if self.failed() { "FAILED" } else { "ok" },
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
            "lost {}, applied twice {}, out of order {}, dead and applied {}, stuck {}; {} of {} rows failed; {:.0} s",
            self.lost,
            self.applied_twice,
            self.out_of_order,
            self.dead_and_applied,
            self.stuck,
            self.failed_rows.len(),
            self.rows.len(),
            self.seconds,
        )
    }
}
