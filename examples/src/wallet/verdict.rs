//! What came of it, counted from the ledger of acknowledged events and from what the database holds.

use std::fmt;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use crate::counts::Counts;
use crate::database::Database;
use crate::offsets::Partition;
use crate::options::Plan;
use crate::report::Tally;

/// The counts of one run; `--json` prints this.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// Events that Kafka acknowledged.
    pub events: u64,
    /// Events that were sent a second time, under the same id.
    pub sent_twice: u64,
    /// Messages that were handled to the end: effects in the database and skipped duplicates.
    pub deliveries: u64,
    /// Duplicates that workers told of; a kill may have swallowed a few.
    pub duplicates_skipped: u64,
    /// Dead letters that workers told of.
    pub parked: u64,
    /// Events whose effect is there.
    pub applied: u64,
    /// Events without effect.
    pub lost: u64,
    /// Events with more than one.
    pub applied_twice: u64,
    /// Effects too many that were not sent too often: a message was delivered again and applied again.
    pub applied_by_redelivery: u64,
    pub wrong_balances: u64,
    pub balances_exact: bool,
    pub kills: u32,
    /// From the first worker's start until everything was applied and every offset committed.
    pub seconds: f64,
    pub messages_per_second: f64,
    /// Whether the group's offsets reached the end of the log.
    pub drained: bool,
    /// What is missing or cannot be judged; empty if all is well.
    pub problems: Vec<String>,
    pub inbox: bool,
    pub seed: u64,
    pub partitions: i32,
    pub workers: u32,
    pub broker: String,
    pub database: String,
}

/// What only the run itself knows.
pub struct Course {
    pub tally: Tally,
    pub took: Duration,
    pub partitions: Vec<Partition>,
    pub broker: String,
}

impl Verdict {
    /// Counts with a connection of its own, after the workers have ended.
    pub async fn reach(plan: &Plan, database: &Database, course: Course) -> Result<Self> {
        let mut connection = database.connect().await?;
        let counts = Counts::read(&mut connection).await?;
        let records = counts.events + u64::from(plan.sent_twice);
        let seconds = course.took.as_secs_f64();
        let drained = course.partitions.iter().all(|partition| partition.behind() == 0);
        Ok(Self {
            events: counts.events,
            sent_twice: plan.sent_twice.into(),
            deliveries: counts.effects + course.tally.skipped,
            duplicates_skipped: course.tally.skipped,
            parked: course.tally.parked,
            applied: counts.applied,
            lost: counts.missing(),
            applied_twice: counts.twice,
            applied_by_redelivery: counts.effects.saturating_sub(records),
            wrong_balances: counts.wrong_balances,
            balances_exact: counts.wrong_balances == 0,
            kills: course.tally.kills,
            seconds: (seconds * 100.0).round() / 100.0,
            #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
            messages_per_second: (records as f64 / seconds).round(),
            drained,
            problems: problems(plan, &counts, &course),
            inbox: !plan.without_inbox,
            seed: plan.seed,
            partitions: plan.partitions,
            workers: plan.workers,
            broker: course.broker,
            database: database.name().await?,
        })
    }

    /// Whether every event was applied exactly once.
    pub fn holds(&self) -> bool {
        self.problems.is_empty() && self.lost == 0 && self.applied_twice == 0 && self.balances_exact
    }

    fn sentence(&self) -> String {
        match (self.holds(), self.inbox) {
            (true, true) => "Every event was applied exactly once.".to_owned(),
            (true, false) => {
                "Every event was applied exactly once, by luck: there was no inbox to see to it.".to_owned()
            }
            (false, true) if self.problems.is_empty() => "The guarantee does not hold.".to_owned(),
            (false, true) => "The run was not complete, so it shows nothing.".to_owned(),
            (false, false) => format!(
                "This is what happens without an inbox: {} effects too many because messages were delivered again, \
                 the others because they were sent again.",
                grouped(self.applied_by_redelivery)
            ),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "on {} and {}", self.broker, self.database)?;
        for (name, count) in [
            ("events", self.events),
            ("sent twice", self.sent_twice),
            ("deliveries", self.deliveries),
            ("duplicates skipped", self.duplicates_skipped),
            ("hard kills", self.kills.into()),
            ("lost", self.lost),
            ("applied twice", self.applied_twice),
            ("wrong balances", self.wrong_balances),
        ] {
            writeln!(f, "  {name:<20}{:>9}", grouped(count))?;
        }
        let pace = if self.kills > 0 { ", at the pace of the kills" } else { "" };
        writeln!(f, "  in {:.1} s, {:.0} messages/s{pace}", self.seconds, self.messages_per_second)?;
        for problem in &self.problems {
            writeln!(f, "  ! {problem}")?;
        }
        f.write_str(&self.sentence())
    }
}

fn problems(plan: &Plan, counts: &Counts, course: &Course) -> Vec<String> {
    let mut problems = Vec::new();
    if counts.events != u64::from(plan.events) {
        problems.push(format!("{} of {} events were acknowledged", counts.events, plan.events));
    }
    if course.tally.kills != plan.kills {
        problems.push(format!("{} of {} kills were carried out", course.tally.kills, plan.kills));
    }
    if course.tally.skipped == 0 && plan.sent_twice > 0 && !plan.without_inbox {
        problems.push("no worker told of a duplicate, so the run shows nothing".to_owned());
    }
    if course.tally.parked > 0 {
        problems.push(format!("{} messages were parked as dead letters", course.tally.parked));
    }
    for partition in &course.partitions {
        if partition.start > 0 {
            problems.push(format!(
                "the broker trimmed partition {} below offset {} during the run: raise --partitions",
                partition.number, partition.start
            ));
        }
        if partition.behind() > 0 {
            problems.push(format!(
                "partition {}: {} records up to offset {} are not committed",
                partition.number,
                partition.behind(),
                partition.end
            ));
        }
    }
    problems
}

/// `12345` as `12,345`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
