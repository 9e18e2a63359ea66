use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

/// Where a message stands in a Kafka log.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Position {
    /// The topic's name.
    pub topic: Arc<str>,
    /// The partition's number.
    pub partition: i32,
    /// The record's offset.
    pub offset: i64,
    /// The topic's id, where the source knows it: a topic made anew under its name has another.
    pub topic_id: Option<Uuid>,
}

impl Position {
    /// A position.
    #[must_use]
    pub fn new(topic: impl Into<Arc<str>>, partition: i32, offset: i64) -> Self {
        Self { topic: topic.into(), partition, offset, topic_id: None }
    }

    /// The same, in the topic of this id.
    #[must_use]
    pub fn with_topic_id(mut self, topic_id: Uuid) -> Self {
        self.topic_id = Some(topic_id);
        self
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]@{}", self.topic, self.partition, self.offset)
    }
}
