use std::fmt;
use std::sync::Arc;

use crate::apply::Disposition;
use crate::failure::FailureKind;
use crate::message::Position;

/// What a worker tells whoever observes it, as it happens.
///
/// Called on the worker's own task: an observer that takes long holds up its group.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Notice {
    /// A message was dealt with and that is durable: it will not be handled again.
    #[non_exhaustive]
    Done {
        /// The consumer.
        consumer: &'static str,
        /// Where the message stood.
        position: Position,
        /// What became of it.
        disposition: Disposition,
    },
    /// A message was not dealt with; nothing of it was written. It is tried again or parked.
    #[non_exhaustive]
    Failed {
        /// The consumer.
        consumer: &'static str,
        /// Where the message stands.
        position: Position,
        /// What it calls for.
        kind: FailureKind,
        /// The cause.
        error: String,
        /// How often it has been tried, this time included.
        attempt: u32,
    },
    /// A partition is being read.
    #[non_exhaustive]
    Started {
        /// The group.
        group: Arc<str>,
        /// Where reading starts.
        position: Position,
    },
    /// A partition is ours but is not read: an operator has to decide.
    #[non_exhaustive]
    Refused {
        /// The group.
        group: Arc<str>,
        /// The topic.
        topic: Arc<str>,
        /// The partition.
        partition: i32,
        /// Why, and what to do.
        reason: String,
    },
    /// The group took a partition back, or it was lost.
    #[non_exhaustive]
    Ended {
        /// The group.
        group: Arc<str>,
        /// The topic.
        topic: Arc<str>,
        /// The partition.
        partition: i32,
    },
    /// Offsets were committed to Kafka, or not: that is never fatal, the next commit replaces it.
    #[non_exhaustive]
    Committed {
        /// The group.
        group: Arc<str>,
        /// The offsets to read next.
        offsets: Vec<Position>,
        /// Why not.
        error: Option<String>,
    },
    /// The Kafka client was beyond repair and is made anew.
    #[non_exhaustive]
    Rebuilt {
        /// The group.
        group: Arc<str>,
        /// What was wrong.
        error: String,
    },
}

/// Who is told.
#[derive(Clone)]
pub(super) struct Observers(Arc<[Observer]>);

pub(super) type Observer = Box<dyn Fn(&Notice) + Send + Sync>;

impl Observers {
    pub(super) fn new(observers: Vec<Observer>) -> Self {
        Self(observers.into())
    }

    pub(super) fn tell(&self, notice: &Notice) {
        for observer in self.0.iter() {
            observer(notice);
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Observers({})", self.0.len())
    }
}
