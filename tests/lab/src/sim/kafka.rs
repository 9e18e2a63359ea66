use std::collections::BTreeMap;

use handstamp::flow::start::Identity;
use handstamp::flow::{NextOffset, Tp};
use uuid::Uuid;

use super::knobs::Topic;

/// The topics' logs, their one consumer group, and the group's offsets.
#[derive(Debug, Default)]
pub(super) struct Kafka {
    pub(super) logs: BTreeMap<Tp, Log>,
    /// Another one for every time that a topic was made anew.
    topics: Vec<TopicId>,
    /// Who has a partition, as the group's coordinator sees it.
    pub(super) owners: BTreeMap<Tp, Option<usize>>,
    pub(super) committed: BTreeMap<Tp, NextOffset>,
    /// Commits that were given up by who sent them and still arrive.
    pub(super) stray: Vec<Vec<Commit>>,
}

pub(super) type TopicId = u32;

/// One partition's part of a commit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Commit {
    pub(super) tp: Tp,
    pub(super) next: NextOffset,
    /// The topic that whoever sent it has in mind.
    pub(super) topic: Option<TopicId>,
}

#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) records: BTreeMap<i64, Record>,
    /// Behind the last record or transaction marker.
    pub(super) end: i64,
}

/// A record: an event's id, where it was read, and what becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) id: u64,
    /// Its message key, the same whenever it is sent.
    pub(super) key: Option<u64>,
    pub(super) topic: TopicId,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    /// The handler fails now and then.
    Flaky,
    /// The handler always fails.
    Poison,
    /// The handler says that it can never be applied.
    Rejected,
    /// No key can be read from it.
    Keyless,
    /// What the handler takes cannot be read from it.
    Garbled,
    /// Skipped without a transaction.
    Tombstone,
    /// Parked without a key.
    KeptTombstone,
    /// The handler hides that a statement of its own failed.
    Hiding,
    /// The handler commits by itself, until somebody mends it.
    Committing,
    /// The handler rolls back by itself, until somebody mends it.
    RollingBack,
}

impl Kind {
    /// Whether giving it up is right.
    pub(super) fn may_be_parked(self) -> bool {
        !matches!(self, Self::Plain | Self::Tombstone | Self::Committing | Self::RollingBack)
    }
}

impl Kafka {
    pub(super) fn new(topics: &[Topic]) -> Self {
        let mut kafka = Self { topics: vec![0; topics.len()], ..Self::default() };
        for (topic, shape) in (0..).zip(topics) {
            for partition in 0..shape.partitions {
                kafka.logs.insert(Tp { topic, partition }, Log::default());
                kafka.owners.insert(Tp { topic, partition }, None);
            }
        }
        kafka
    }

    pub(super) fn topic(&self, tp: Tp) -> TopicId {
        self.topics[usize::from(tp.topic)]
    }

    /// Deletes a topic, and the group's offsets with it, and makes one of the same name.
    pub(super) fn recreate(&mut self, topic: u16) {
        self.topics[usize::from(topic)] += 1;
        self.committed.retain(|tp, _| tp.topic != topic);
        for (_, log) in self.logs.iter_mut().filter(|(tp, _)| tp.topic == topic) {
            *log = Log::default();
        }
    }

    /// Takes everything from a process that left or was thrown out.
    pub(super) fn evict(&mut self, process: usize) {
        for owner in self.owners.values_mut() {
            owner.take_if(|owner| *owner == process);
        }
    }

    /// Behind this there is nothing to read or to commit.
    pub(super) fn is_drained(&self) -> bool {
        self.logs.iter().all(|(tp, log)| self.committed.get(tp) == Some(&NextOffset(log.end)))
    }
}

/// A topic as its rows name it.
pub(super) fn identity(topic: TopicId) -> Identity {
    Identity { cluster: "cluster".to_owned(), topic_id: Uuid::from_u128(u128::from(topic) + 1) }
}
