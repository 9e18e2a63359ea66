use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;

use super::arena::Arena;
use super::member::Member;
use super::report::{Count, RowReport};
use super::row::{Fault, Row, Size};
use super::stage::{Setup, Stage};
use crate::sim::random::Random;

/// One row being run: its counters, and what its stages have found so far.
pub struct Trial {
    pub arena: Arc<Arena>,
    row: Row,
    logs: PathBuf,
    report: Mutex<RowReport>,
    stages: Mutex<u64>,
}

impl Trial {
    pub fn new(arena: Arc<Arena>, row: Row, size: Size) -> Self {
        let counts =
            row.asks.iter().map(|ask| (ask.fault, Count { asked: ask.at(size), ..Count::default() }));
        let faults: BTreeMap<_, _> = counts.collect();
        let report =
            RowReport { id: row.id.to_owned(), what: row.what.to_owned(), faults, ..RowReport::default() };
        let logs = arena.logs.join(row.id);
        // Of an earlier run.
        let _none = fs::remove_dir_all(&logs);
        Self { arena, row, logs, report: Mutex::new(report), stages: Mutex::new(0) }
    }

    /// Whether the oracle has to see more of these. Also false once twice as many were tried as asked: the
    /// row fails then, and does not go on for ever.
    pub fn wants(&self, fault: Fault) -> bool {
        let report = self.report();
        let count = report.faults.get(&fault).copied().unwrap_or_default();
        count.observed < count.asked && count.injected < 2 * count.asked + 10
    }

    /// How many the oracle has to see.
    pub fn asked(&self, fault: Fault) -> u64 {
        self.report().faults.get(&fault).map_or(0, |count| count.asked)
    }

    /// One was done.
    pub fn injected(&self, fault: Fault) {
        self.report().faults.entry(fault).or_default().injected += 1;
    }

    /// One was seen to have happened.
    pub fn observed(&self, fault: Fault) {
        self.report().faults.entry(fault).or_default().observed += 1;
    }

    /// So many were seen in all.
    pub fn observed_in_all(&self, fault: Fault, times: u64) {
        self.report().faults.entry(fault).or_default().observed = times;
    }

    /// The row fails for this reason, and goes on.
    pub fn blame(&self, reason: impl Into<String>) {
        self.report().blame.push(reason.into());
    }

    /// A source of choices of its own.
    pub fn random(&self, purpose: u64) -> Random {
        let row = self.row.id.bytes().fold(0, |sum, byte| sum * 256 + u64::from(byte));
        Random::new(self.arena.seed ^ (row << 32) ^ purpose)
    }

    /// A stage of the row's own. Several may be open at a time.
    pub async fn stage(&self, setup: Setup) -> Result<Stage> {
        let number = {
            let mut stages = self.stages.lock().unwrap_or_else(PoisonError::into_inner);
            *stages += 1;
            *stages
        };
        let logs = self.logs.join(number.to_string());
        Stage::open(&self.arena, setup, self.random(u64::MAX - number), logs).await
    }

    /// Waits until none of the members has a client that it has given up: such a one can take a whole processor.
    pub async fn blame_clients_that_do_not_end(&self, members: &[Member]) -> Result<()> {
        for member in members {
            if !member.until_rid_of_clients().await? {
                self.blame("a client that was given up has not ended");
            }
        }
        Ok(())
    }

    /// Waits until everything on a stage is dealt with, and adds what is found to the row's report.
    pub async fn close(&self, stage: Stage, members: Vec<Member>) -> Result<()> {
        let journal = Arc::clone(&stage.journal);
        let findings = stage.close(members).await?;
        let counts = journal.counts();
        let mut report = self.report();
        report.events += findings.events;
        report.deliveries += counts.deliveries;
        report.duplicates_skipped += counts.duplicates;
        report.redeliveries += counts.redeliveries;
        report.takeovers += counts.takeovers;
        report.verdict += findings.verdict;
        report.idle_transactions += u64::try_from(findings.idle_transactions.len())?;
        report.blame.extend(findings.idle_transactions);
        report.resident_mb = report.resident_mb.max(findings.watched.resident_mb);
        report.recoveries.extend(journal.recoveries());
        report.blame.extend(findings.unclean);
        report.blame.extend(findings.uncopied);
        report.blame.extend(journal.refusals().into_iter().take(3));
        if findings.watched.samples == 0 {
            report.blame.push("committed offsets were never compared with the database".to_owned());
        }
        Ok(())
    }

    /// The report of the row, which has ended.
    pub fn finish(&self, took: Duration) -> RowReport {
        let mut report = self.report().clone();
        report.seconds = took.as_secs_f64();
        report.sum_up();
        report.judge(self.row.expects);
        if report.failed() {
            report.blame.push(format!("the logs of its workers: {}", self.logs.display()));
        } else if !self.arena.keep_logs {
            let _stays = fs::remove_dir_all(&self.logs);
        }
        report
    }

    fn report(&self) -> MutexGuard<'_, RowReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
