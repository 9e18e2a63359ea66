use super::{Epoch, JobId, Millis, NextOffset, Tp};

/// What the core knows, for health checks and tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Jobs that have not ended, those of closed epochs included.
    pub running: usize,
    /// Bytes of the records held.
    pub bytes: usize,
    /// Whether it is giving everything up.
    pub stopping: bool,
    /// The partitions it has, in order.
    pub partitions: Vec<PartitionSnapshot>,
}

/// One partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionSnapshot {
    /// Which.
    pub tp: Tp,
    /// Its assignment.
    pub epoch: Epoch,
    /// Records held, running ones included.
    pub records: usize,
    /// Whether fetching is paused.
    pub paused: bool,
    /// Whether it is being given up.
    pub draining: bool,
    /// What Kafka may be told.
    pub durable: Option<NextOffset>,
    /// What Kafka acknowledged in this epoch.
    pub committed: Option<NextOffset>,
    /// Its handlers.
    pub lanes: Vec<LaneSnapshot>,
}

/// One handler of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneSnapshot {
    /// Everything below is dealt with.
    pub next: Option<NextOffset>,
    /// What its row is known to stand at.
    pub acknowledged: NextOffset,
    /// Its tracks.
    pub tracks: Vec<TrackSnapshot>,
}

/// One track of a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackSnapshot {
    /// The job that runs.
    pub running: Option<JobId>,
    /// When its first record is tried again.
    pub waiting_until: Option<Millis>,
    /// How often its first record has failed.
    pub failures: u32,
    /// Whether its first record must not be run again.
    pub halted: bool,
}
