use std::time::Duration;

use crate::failure::Failure;
use crate::flow::Disposition;
use crate::inbox::dead_letters::Reason;
use crate::inbox::progress::Tracking;

/// One run of one message, or of several of one partition in one transaction.
#[derive(Clone, Debug)]
pub struct Job {
    /// 1 the first time.
    pub attempt: u32,
    /// The progress to write; `None` for messages without a tracked position.
    pub tracking: Option<Tracking>,
    /// What to do.
    pub task: Task,
}

/// What to do with a message.
#[derive(Clone, Debug)]
pub enum Task {
    /// To run it through its handler.
    Apply,
    /// To give it up.
    Park {
        /// Why.
        reason: Reason,
        /// What went wrong.
        error: String,
        /// How often it was tried.
        attempts: u32,
    },
}

impl Job {
    /// A first run without progress.
    #[must_use]
    pub fn by_hand() -> Self {
        Self { attempt: 1, tracking: None, task: Task::Apply }
    }
}

/// How a job went of which everything was kept.
#[derive(Debug)]
pub struct JobDone {
    /// What became of each message, in order.
    pub dispositions: Vec<Disposition>,
    /// How much of its time the handlers had.
    pub handlers: Duration,
}

/// Why nothing of a job's messages was kept.
#[derive(Debug)]
pub struct JobFailure {
    /// The message that was worked on last, by its place in the job: the one at fault, if one is.
    pub at: usize,
    /// What went wrong.
    pub failure: Failure,
}
