use super::{Place, Task};

/// One message of a job, as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// What is to be done with it, should it be new.
    pub intent: Intent,
    /// Where it stands, if its progress is tracked.
    pub place: Option<Place>,
    /// The first message of the job with the same key, which may be itself; `None` without a key.
    pub key: Option<usize>,
}

/// What reading a message came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Intent {
    /// To call the handler.
    Apply,
    /// To write a dead letter: it cannot be read, or was tried too often.
    Park,
    /// To move past it: a tombstone, which the handler or the key can do nothing with.
    Skip,
}

impl Intent {
    pub(super) fn task(self) -> Option<Task> {
        match self {
            Self::Apply => Some(Task::Apply),
            Self::Park => Some(Task::Park),
            Self::Skip => None,
        }
    }
}
