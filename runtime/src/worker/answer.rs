//! What comes back from work that was started.

use std::sync::Arc;

use uuid::Uuid;

use super::ownership::Ticket;
use crate::apply::{JobDone, JobFailure};
use crate::flow::{Epoch, JobId, LaneStart, NextOffset, Saved, Tp};
use crate::inbox::consumers::ConsumerId;
use crate::inbox::progress::TrackedPartition;
use crate::source::kafka::LookupError;

/// One of them.
pub(super) enum Answer {
    Job(JobId, Ended),
    Saved(Vec<Saved>),
    Committed(Vec<(Tp, Epoch, NextOffset)>, Result<(), LookupError>),
    Opened(Opened),
    TopicIds(Vec<Option<Uuid>>),
    OffLog(Vec<(Tp, Epoch)>),
    Stalled(Vec<(Tp, Epoch)>),
}

/// How a job ended.
pub(super) type Ended = Result<JobDone, JobFailure>;

/// The row that a lane writes.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) consumer: ConsumerId,
    pub(super) partition: Arc<TrackedPartition>,
}

/// What an opening has found.
pub(super) struct Opened {
    pub(super) ticket: Ticket,
    pub(super) found: Vec<(Tp, Found)>,
    /// Why it could not look yet; it goes on trying.
    pub(super) error: Option<String>,
}

/// Where a partition starts, or why not.
pub(super) enum Found {
    Start { at: i64, lanes: Vec<OpenLane>, notes: Vec<String> },
    Refused(String),
}

/// A handler's row and what the core wants to know of it.
#[derive(Clone)]
pub(super) struct OpenLane {
    pub(super) row: Row,
    pub(super) start: LaneStart,
}
