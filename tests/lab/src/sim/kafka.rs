use std::collections::BTreeMap;

use handstamp::flow::{NextOffset, Tp};

use super::knobs::Topic;

/// A topic's logs, its one consumer group, and the group's offsets.
#[derive(Debug, Default)]
pub(super) struct Kafka {
    pub(super) logs: BTreeMap<Tp, Log>,
    /// Who has a partition, as the group's coordinator sees it.
    pub(super) owners: BTreeMap<Tp, Option<usize>>,
    pub(super) committed: BTreeMap<Tp, NextOffset>,
    /// Commits that were given up by who sent them and still arrive.
    pub(super) stray: Vec<Vec<(Tp, NextOffset)>>,
}

#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) records: BTreeMap<i64, Record>,
    /// Behind the last record or transaction marker.
    pub(super) end: i64,
}

/// A record: an event's id, and what becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) id: u64,
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
    /// Skipped without a transaction.
    Tombstone,
}

impl Kafka {
    pub(super) fn new(topics: &[Topic]) -> Self {
        let mut kafka = Self::default();
        for (topic, shape) in (0..).zip(topics) {
            for partition in 0..shape.partitions {
                kafka.logs.insert(Tp { topic, partition }, Log::default());
                kafka.owners.insert(Tp { topic, partition }, None);
            }
        }
        kafka
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
