use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::inbox::consumers::Consumer;
use crate::inbox::progress::Listed;
use crate::source::kafka::{Admin, Kafka, PartitionLog, TopicLog};

/// The client's group where a consumer has none; it never joins.
const NO_GROUP: &str = "handstamp";

/// What Kafka says of the partition of a row.
#[derive(Debug)]
pub(super) struct Seen {
    /// `None`: there is no such partition any more.
    pub(super) log: Option<PartitionLog>,
    /// Whether the row is about this log, and not about another topic or cluster of its name.
    pub(super) same: bool,
    /// The offset that the group has committed.
    pub(super) committed: Option<i64>,
}

impl Seen {
    /// How many offsets are still to be dealt with.
    pub(super) fn lag(&self, row: &Listed) -> Option<i64> {
        let log = self.log.filter(|_| self.same)?;
        Some(log.high.saturating_sub(row.progress.next).max(0))
    }
}

/// Asks Kafka about every row, each topic and each group once.
pub(super) fn look(kafka: &Kafka, consumers: &[Consumer], rows: &[Listed]) -> Result<Vec<Seen>, String> {
    let mut admins: BTreeMap<&str, Admin> = BTreeMap::new();
    let mut topics: BTreeMap<&str, Option<TopicLog>> = BTreeMap::new();
    let mut committed: BTreeMap<(&str, &str), BTreeMap<i32, i64>> = BTreeMap::new();
    let mut seen = Vec::with_capacity(rows.len());
    for row in rows {
        let (topic, partition) = (&*row.progress.partition.topic, row.progress.partition.partition);
        let consumer = consumers.iter().find(|consumer| consumer.name == row.consumer);
        let group = consumer.and_then(|consumer| consumer.group.as_deref()).unwrap_or(NO_GROUP);
        let admin = once(&mut admins, group, || Admin::new(kafka, group))?;
        let Some(log) = once(&mut topics, topic, || admin.find_topic(topic))? else {
            seen.push(Seen { log: None, same: false, committed: None });
            continue;
        };
        let committed = once(&mut committed, (group, topic), || admin.committed(topic, log))?;
        seen.push(Seen {
            log: log.partition(partition).copied(),
            same: log.is_of(&row.progress.partition),
            committed: committed.get(&partition).copied(),
        });
    }
    Ok(seen)
}

fn once<K: Ord, V>(
    known: &mut BTreeMap<K, V>,
    key: K,
    ask: impl FnOnce() -> Result<V, String>,
) -> Result<&V, String> {
    match known.entry(key) {
        Entry::Occupied(entry) => Ok(entry.into_mut()),
        Entry::Vacant(entry) => Ok(entry.insert(ask()?)),
    }
}
