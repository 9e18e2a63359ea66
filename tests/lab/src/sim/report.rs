use std::fmt;
use std::ops::AddAssign;

use serde::Serialize;

/// What a simulation went through, summed over seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    pub seeds: u64,
    pub violations: u64,
    pub steps: u64,
    pub kills: u64,
    pub freezes: u64,
    pub evictions: u64,
    pub revocations: u64,
    pub drains_cut: u64,
    pub database_crashes: u64,
    pub restores: u64,
    pub resets: u64,
    pub reassignments: u64,
    pub refused_starts: u64,
    pub environment_errors: u64,
    pub unknown_commits: u64,
    pub overtaken: u64,
    pub errors_hidden: u64,
    pub transactions_ended: u64,
    pub topics_recreated: u64,
    pub keys_forgotten: u64,
    pub offset_commits: u64,
    pub offset_commits_failed: u64,
    pub offsets_moved_back: u64,
    pub offsets_expired: u64,
    pub deliveries: u64,
    pub applied: u64,
    pub skipped: u64,
    pub parked: u64,
    /// Jobs of several records,
    pub batches: u64,
    /// and how many of those failed.
    pub batches_failed: u64,
}

impl AddAssign for Report {
    fn add_assign(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.violations += other.violations;
        self.steps += other.steps;
        self.kills += other.kills;
        self.freezes += other.freezes;
        self.evictions += other.evictions;
        self.revocations += other.revocations;
        self.drains_cut += other.drains_cut;
        self.database_crashes += other.database_crashes;
        self.restores += other.restores;
        self.resets += other.resets;
        self.reassignments += other.reassignments;
        self.refused_starts += other.refused_starts;
        self.environment_errors += other.environment_errors;
        self.unknown_commits += other.unknown_commits;
        self.overtaken += other.overtaken;
        self.errors_hidden += other.errors_hidden;
        self.transactions_ended += other.transactions_ended;
        self.topics_recreated += other.topics_recreated;
        self.keys_forgotten += other.keys_forgotten;
        self.offset_commits += other.offset_commits;
        self.offset_commits_failed += other.offset_commits_failed;
        self.offsets_moved_back += other.offsets_moved_back;
        self.offsets_expired += other.offsets_expired;
        self.deliveries += other.deliveries;
        self.applied += other.applied;
        self.skipped += other.skipped;
        self.parked += other.parked;
        self.batches += other.batches;
        self.batches_failed += other.batches_failed;
    }
}

/// A broken promise. Replaying the seed leads to it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub seed: u64,
    pub step: u64,
    pub promise: Promise,
    pub facts: String,
}

/// What is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Promise {
    NoneLost,
    NoneTwice,
    /// Neither Kafka's offset nor the row is ever above a record that is not dealt with.
    OffsetsBehind,
    /// Neither both nor neither.
    ParkedOrApplied,
    /// What a handler wrote before it failed is never committed.
    FailureLeavesNothing,
    /// What the database does to a record is never the record's fault.
    OnlyBadParked,
    Order,
    OneJobPerTrack,
    /// Everything drains once the faults are over.
    Liveness,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, step, promise, facts } = self;
        write!(f, "seed {seed}, step {step}: {promise:?}: {facts}")
    }
}
