use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};

use super::trial::Trial;

/// One line of the fault matrix.
#[derive(Clone, Copy)]
pub struct Row {
    /// As in the matrix: F1 to F22.
    pub id: &'static str,
    /// What is done, in a few words.
    pub what: &'static str,
    /// How often, at least. A row in which the oracle observes fewer fails.
    pub asks: &'static [Ask],
    /// What must have been seen besides, so that the row says anything.
    pub expects: Expects,
    /// Does it.
    pub run: fn(Arc<Trial>) -> LocalBoxFuture<'static, Result<()>>,
}

/// How often one kind of fault has to happen.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    pub fault: Fault,
    pub ci: u64,
    pub full: u64,
}

/// What a row must have seen besides its faults.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expects {
    /// Records that came again after they were dealt with.
    pub duplicates: bool,
    /// Partitions whose reader was replaced while it thought that it was still theirs.
    pub takeovers: bool,
    /// No record that was dealt with comes again.
    pub no_redelivery: bool,
}

/// How much is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    /// A tenth of `ci`: shows that the laboratory works.
    #[value(hide = true)]
    Smoke,
    /// All rows in minutes.
    Ci,
    /// All rows in about an hour.
    Full,
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// SIGKILL at any moment.
    Kills,
    /// SIGKILL at a point between two steps.
    CrashPointKills,
    /// Points at which a process was killed often enough.
    CrashPoints,
    /// Members that were frozen until the group had gone on without them, and then went on themselves.
    Zombies,
    /// Members that the group gave up because they did not poll.
    Evictions,
    /// SIGTERM under load.
    CleanStops,
    /// Members that joined or left.
    MembershipChanges,
    /// Immediate stops of PostgreSQL.
    DatabaseCrashes,
    /// SIGKILL of a PostgreSQL backend, which takes all others with it.
    BackendKills,
    /// `pg_terminate_backend` in the middle of a transaction.
    BackendTerminations,
    /// COMMITs that were done and not answered.
    CommitsDoneUnheard,
    /// COMMITs that were sent and not done.
    CommitsUndone,
    /// Links to PostgreSQL that were open and silent.
    SilentLinks,
    /// Transactions that the server ended because they waited for one another.
    Deadlocks,
    /// Transactions that the server refused because of what another one had done to their row.
    SerializationFailures,
    /// Statements that waited for a lock longer than they may.
    LockTimeouts,
    /// Handlers that hid a failed statement.
    HiddenErrors,
    /// Handlers that committed by themselves.
    OwnCommits,
    /// Handlers that rolled back by themselves.
    OwnRollbacks,
    /// Handlers that panicked.
    Panics,
    /// Handlers that left a nested transaction open.
    ForgottenTransactions,
    /// Handlers that dropped a statement that was on its way.
    DroppedStatements,
    /// SIGKILL of the broker.
    BrokerRestarts,
    /// SIGSTOP of the broker for longer than a session.
    BrokerFreezes,
    /// Committed offsets that were moved back while a worker read the partition.
    OffsetsMovedBack,
    /// Committed offsets that were moved back while no worker ran.
    OffsetsMovedBackAtRest,
    /// Committed offsets that were moved ahead of the database while no worker ran.
    OffsetsMovedAhead,
    /// Groups whose offsets were deleted.
    GroupsForgotten,
    /// Logs that lost records which were dealt with.
    LogsCutBehind,
    /// Logs that lost records which nobody had read, while no worker ran.
    LogsCutAhead,
    /// Logs that lost records which nobody had read, while a worker read them.
    LogsCutUnderReader,
    /// PostgreSQL taken back to an older state while workers ran.
    DatabaseRestores,
    /// Commits of offsets that the coordinator answered with an error.
    CommitErrors,
    /// Errors with which it answered as often as with all others.
    CommitErrorKinds,
    /// Requests to join, to stay or to find the coordinator that were answered with an error.
    GroupErrors,
    /// Requests for committed offsets that were answered with an error.
    OffsetReadErrors,
    /// Requests for records that were answered with an error.
    FetchErrors,
    /// Groups whose coordinator became another broker.
    CoordinatorMoves,
    /// Topics for dead letters that were not there.
    MissingLetterTopics,
    /// Topics for dead letters that take no record of that size.
    SmallLetterTopics,
    /// Records without a key or a payload that can be read.
    UnreadableRecords,
    /// Records on which the handler always fails.
    HopelessRecords,
    /// Handlers that worked longer than a member may go without polling.
    LongHandlers,
}

impl Ask {
    pub const fn new(fault: Fault, ci: u64, full: u64) -> Self {
        Self { fault, ci, full }
    }

    pub fn at(&self, size: Size) -> u64 {
        match size {
            Size::Smoke => self.ci.div_ceil(10).max(2),
            Size::Ci => self.ci,
            Size::Full => self.full,
        }
    }
}

impl Size {
    pub fn name(self) -> &'static str {
        match self {
            Self::Smoke => "smoke",
            Self::Ci => "ci",
            Self::Full => "full",
        }
    }

    /// How long a row may take: several times what the longest does.
    pub fn limit(self) -> Duration {
        match self {
            Self::Smoke => Duration::from_mins(5),
            Self::Ci => Duration::from_mins(10),
            Self::Full => Duration::from_hours(1),
        }
    }
}
