use super::{Epoch, JobId, LaneId, Millis, NextOffset, Offset, Order, OrderKey, Tp};

/// What happened, as the shell tells the core.
#[derive(Clone, Debug)]
pub enum Event<R> {
    /// A partition is ours and its rows have been read.
    Assigned {
        /// The partition.
        tp: Tp,
        /// Higher than any epoch of this partition before.
        epoch: Epoch,
        /// Where reading starts; `None` for the start of a log whose first offset is not known.
        start: Option<NextOffset>,
        /// One per handler, in the order of [`LaneId::handler`].
        lanes: Vec<LaneStart>,
    },
    /// A record was read. Records of one epoch come in the order of their offsets; gaps are normal.
    Record {
        /// The partition.
        tp: Tp,
        /// The epoch it was read in.
        epoch: Epoch,
        /// The record's offset.
        offset: Offset,
        /// What its message key comes to; `None` without one.
        key: Option<OrderKey>,
        /// How much memory it holds.
        bytes: usize,
        /// What the shell finds the record by; handed back in [`super::Job::records`].
        handle: R,
    },
    /// A job ended. Every job that was started ends once, cancelled or not.
    Finished {
        /// The job.
        job: JobId,
        /// How it ended.
        outcome: Outcome,
        /// How much of its time its handlers had.
        handlers: Millis,
    },
    /// The answer to [`super::Action::SaveProgress`], one entry for each that was asked.
    ProgressSaved {
        /// What became of each.
        saved: Vec<Saved>,
    },
    /// The answer to [`super::Action::Commit`]. It comes once for each, after the shell's own deadline
    /// at the latest.
    Committed {
        /// What was asked.
        offsets: Vec<(Tp, Epoch, NextOffset)>,
        /// Whether Kafka took it. Not knowing counts as no.
        ok: bool,
    },
    /// A poll returned nothing and this is where the consumer stands. It must come behind every record
    /// that was read before; a position the client does not know is not sent.
    Position {
        /// The partition.
        tp: Tp,
        /// The epoch the poll belongs to.
        epoch: Epoch,
        /// The consumer's position.
        position: NextOffset,
    },
    /// The time of [`super::Core::next_wakeup`] has come.
    Tick,
    /// Partitions are to be given up in good order: [`super::Action::Released`] follows for each.
    Revoke {
        /// The partitions.
        tps: Vec<Tp>,
    },
    /// The time for a good end is over: handlers are cancelled, what is durable is committed.
    DrainDeadline {
        /// The partitions.
        tps: Vec<Tp>,
    },
    /// Partitions are gone already: nothing of them may be committed any more.
    Lost {
        /// The partitions.
        tps: Vec<Tp>,
    },
    /// Give up every partition, take no new one, then [`super::Action::Finished`].
    Drain,
}

/// How far one handler had got when its partition was assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneStart {
    /// The row's `next`, as read. It may be above the start, where Kafka's offset was lower.
    pub acknowledged: NextOffset,
    /// Which records are run one after the other.
    pub order: Order,
    /// How often a failing record is tried before it is parked.
    pub attempts: u32,
    /// How many records one job may take. At least 1.
    pub batch: usize,
    /// Whether all records of a job are written at once, so that one that fails is not told from others.
    pub together: bool,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Every record of the job is applied, parked or found to be a duplicate, and the row was committed up
    /// to the job's watermark.
    Done,
    /// Every record is dealt with, nothing written.
    Skipped,
    /// The database or the way to it failed: tried again for ever.
    Environment,
    /// It may or may not be committed: run again, the inbox answers.
    Unknown,
    /// The handler failed: an attempt.
    Failed,
    /// It can never be applied: parked next.
    Rejected,
    /// Called off before it was committed.
    Cancelled,
    /// The row is lower than what was acknowledged.
    WentBack,
    /// The row is not ours any more: reset, or of another topic.
    Superseded,
    /// The handler ended the transaction by itself. Running it again could write it twice.
    TransactionEnded,
    /// Something must be changed before anything can run.
    Misconfigured,
}

/// What became of one [`super::Save`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved {
    /// The lane.
    pub lane: LaneId,
    /// The epoch it was asked in.
    pub epoch: Epoch,
    /// The watermark that was asked for.
    pub watermark: NextOffset,
    /// How it went.
    pub result: SavedResult,
}

/// How saving one row went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SavedResult {
    /// The row stands at the watermark or above.
    Ok,
    /// Not known to be written: tried again.
    Failed,
    /// As [`Outcome::WentBack`].
    WentBack,
    /// As [`Outcome::Superseded`].
    Superseded,
}
