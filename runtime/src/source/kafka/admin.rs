//! What the operator's tool asks. It belongs to no group and may wait, so everything here blocks; the
//! errors say what to change.

use std::collections::BTreeMap;
use std::fmt::Display;

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::{Offset, TopicPartitionList};
use uuid::Uuid;

use super::lookup::{LIMIT, Quiet, bystander, missing, partitions};
use super::{Kafka, ffi};
use crate::inbox::progress::TrackedPartition;

/// A client that asks about a group.
pub(crate) struct Admin {
    kafka: Kafka,
    group: String,
    client: BaseConsumer<Quiet>,
}

/// A topic as the brokers have it.
#[derive(Clone, Debug)]
pub(crate) struct TopicLog {
    /// The cluster's id.
    pub(crate) cluster: String,
    /// The topic's id; nil where the broker has none.
    pub(crate) id: Uuid,
    /// Its partitions, in order.
    pub(crate) partitions: Vec<PartitionLog>,
}

/// A partition's log: offsets from `low` up to, but without, `high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartitionLog {
    /// Its number.
    pub(crate) partition: i32,
    /// The first offset.
    pub(crate) low: i64,
    /// The one behind the last.
    pub(crate) high: i64,
}

impl TopicLog {
    /// Whether a row is about this topic, as far as the brokers tell.
    pub(crate) fn is_of(&self, row: &TrackedPartition) -> bool {
        *row.cluster == *self.cluster && row.topic_id == self.id
    }

    /// One of its partitions.
    pub(crate) fn partition(&self, partition: i32) -> Option<&PartitionLog> {
        self.partitions.iter().find(|log| log.partition == partition)
    }
}

impl Admin {
    pub(crate) fn new(kafka: &Kafka, group: &str) -> Result<Self, String> {
        kafka.check().map_err(|error| error.to_string())?;
        Ok(Self { kafka: kafka.clone(), group: group.to_owned(), client: bystander(kafka, group)? })
    }

    /// A topic that must be there.
    pub(crate) fn topic(&self, topic: &str) -> Result<TopicLog, String> {
        self.find_topic(topic)?.ok_or_else(|| missing(&self.kafka, topic))
    }

    /// A topic, `None` if there is none of that name.
    pub(crate) fn find_topic(&self, topic: &str) -> Result<Option<TopicLog>, String> {
        let Some(mut numbers) = partitions(&self.kafka, &self.client, topic)? else {
            return Ok(None);
        };
        numbers.sort_unstable();
        let failed =
            |what: &str, error: &dyn Display| format!("cannot read {what} of topic `{topic}`: {error}");
        let cluster = self.client.client().fetch_cluster_id(LIMIT);
        let cluster = cluster.ok_or_else(|| failed("the cluster", &"no broker answered in time"))?;
        let ids = ffi::topic_ids(&self.client, &[topic], LIMIT).map_err(|code| failed("the id", &code))?;
        let id = match ids.into_iter().next() {
            Some(id) => id.map_err(|code| failed("the id", &code))?,
            None => Uuid::nil(),
        };
        let partitions = numbers.into_iter().map(|partition| {
            let (low, high) = self
                .client
                .fetch_watermarks(topic, partition, LIMIT)
                .map_err(|error| failed("the log", &error))?;
            Ok(PartitionLog { partition, low, high })
        });
        Ok(Some(TopicLog { cluster, id, partitions: partitions.collect::<Result<_, String>>()? }))
    }

    /// The group's committed offsets, by partition; a partition without one is left out.
    pub(crate) fn committed(&self, topic: &str, log: &TopicLog) -> Result<BTreeMap<i32, i64>, String> {
        let failed = |error: &dyn Display| {
            format!("cannot read the offsets of group `{}` on topic `{topic}`: {error}", self.group)
        };
        let mut list = TopicPartitionList::new();
        for partition in &log.partitions {
            list.add_partition(topic, partition.partition);
        }
        let list = self.client.committed_offsets(list, LIMIT).map_err(|error| failed(&error))?;
        let mut committed = BTreeMap::new();
        for element in list.elements() {
            element.error().map_err(|error| failed(&error))?;
            if let Offset::Offset(offset) = element.offset() {
                committed.insert(element.partition(), offset);
            }
        }
        Ok(committed)
    }
}
