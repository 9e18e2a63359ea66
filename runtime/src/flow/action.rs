use super::{Epoch, JobId, LaneId, NextOffset, Offset, Offsets, Tp};

/// What the shell is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action<R> {
    /// Run a job; [`super::Event::Finished`] tells how it ended.
    Start(Job<R>),
    /// Cancel the handler of a job. What owns the connection goes on until the transaction has ended.
    Cancel {
        /// The job.
        job: JobId,
    },
    /// Write progress that no job's transaction writes. Answered by [`super::Event::ProgressSaved`]
    /// before the next one is asked.
    SaveProgress(Vec<Save>),
    /// Commit offsets to Kafka. Answered by [`super::Event::Committed`] before the next one is asked.
    Commit(Vec<(Tp, Epoch, NextOffset)>),
    /// Stop fetching. Holds until [`Action::Resume`] or the end of the epoch: every epoch starts unpaused.
    Pause {
        /// The partition.
        tp: Tp,
        /// Ignored if this is not its epoch any more.
        epoch: Epoch,
    },
    /// Fetch again.
    Resume {
        /// The partition.
        tp: Tp,
        /// Ignored if this is not its epoch any more.
        epoch: Epoch,
    },
    /// The epoch is closed: read Kafka's offset and the rows again and assign the partition anew.
    Reassign {
        /// The partition.
        tp: Tp,
        /// The epoch that is closed. Ignored if this is not its epoch any more.
        epoch: Epoch,
        /// Why.
        reason: ReassignReason,
    },
    /// These partitions have nothing left to do and may be given back.
    Released {
        /// The partitions.
        tps: Vec<Tp>,
    },
    /// Nothing may go on: the core drains by itself, [`Action::Finished`] follows.
    Stop {
        /// Why.
        reason: StopReason,
    },
    /// All partitions are released and no job runs.
    Finished,
}

/// One run of the first records of a track, in one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job<R> {
    /// Its number.
    pub id: JobId,
    /// The lane it runs in.
    pub lane: LaneId,
    /// The lane's track, from 0.
    pub track: u16,
    /// The epoch it belongs to.
    pub epoch: Epoch,
    /// The records, in the order of their offsets: one or more. A record that has failed is alone.
    pub records: Vec<JobRecord<R>>,
    /// From 1: how often the handler has been tried, this time included. For [`Task::Park`] how often it was.
    pub attempt: u32,
    /// What to do with the records.
    pub task: Task,
    /// What the row's `next` is raised to in the job's transaction.
    pub watermark: NextOffset,
    /// What the row's `next` is at least, unless the database went back in time.
    pub acknowledged: NextOffset,
    /// What is dealt with out of turn.
    pub ahead: Ahead,
}

/// What is dealt with out of turn, at the row's `next` or above: a row that went back in time need not be lower
/// than before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// What the row must have, unless the database went back in time: acknowledged in this epoch.
    pub relied: Offsets,
    /// What the row is given, dealt with by this transaction.
    pub added: Offsets,
}

/// A record of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobRecord<R> {
    /// Its offset.
    pub offset: Offset,
    /// What the shell finds it by.
    pub handle: R,
}

/// What to do with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Task {
    /// Call the handler.
    Apply,
    /// Write a dead letter.
    Park,
}

/// A row to write, or to read again where `watermark` equals `acknowledged`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Save {
    /// The lane.
    pub lane: LaneId,
    /// The epoch it belongs to.
    pub epoch: Epoch,
    /// What the row's `next` is raised to.
    pub watermark: NextOffset,
    /// What the row's `next` is at least, unless the database went back in time.
    pub acknowledged: NextOffset,
    /// As [`Ahead::relied`].
    pub relied: Offsets,
}

/// Why a partition is to be assigned anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReassignReason {
    /// The database was restored or failed over to an older state.
    WentBack,
    /// The progress was reset, or belongs to another topic.
    Superseded,
}

/// Why nothing may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// The handler ended its transaction by itself at this record.
    TransactionEnded {
        /// Whose handler.
        lane: LaneId,
        /// The record.
        offset: Offset,
    },
    /// Something must be changed before this lane can run.
    Misconfigured {
        /// Whose handler.
        lane: LaneId,
        /// The record that met it.
        offset: Offset,
    },
}
