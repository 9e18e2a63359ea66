//! How far the group has got, as Kafka has it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use tokio::task::spawn_blocking;

use crate::broker::Broker;
use crate::options::Plan;

/// Asks for offsets without being a member of the group.
pub struct Offsets {
    client: Arc<BaseConsumer>,
    topic: String,
    partitions: i32,
}

/// One partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    pub number: i32,
    pub start: i64,
    pub end: i64,
    /// The offset to be read next, as the group has committed it.
    pub committed: Option<i64>,
}

impl Partition {
    /// Records that the group has not said to be done with.
    pub fn behind(&self) -> i64 {
        self.end - self.committed.unwrap_or(self.start)
    }
}

const LIMIT: Duration = Duration::from_secs(10);

impl Offsets {
    pub fn new(plan: &Plan, broker: &Broker) -> Result<Self> {
        let client: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", broker.servers())
            .set("group.id", &plan.run)
            .set("enable.auto.commit", "false")
            .create()?;
        Ok(Self { client: Arc::new(client), topic: plan.run.clone(), partitions: plan.partitions })
    }

    pub async fn read(&self) -> Result<Vec<Partition>> {
        let (client, topic, partitions) = (self.client.clone(), self.topic.clone(), self.partitions);
        spawn_blocking(move || read(&client, &topic, partitions)).await?
    }
}

fn read(client: &BaseConsumer, topic: &str, partitions: i32) -> Result<Vec<Partition>> {
    let mut list = TopicPartitionList::new();
    list.add_partition_range(topic, 0, partitions - 1);
    let committed =
        client.committed_offsets(list, LIMIT).context("Kafka does not say what the group has committed")?;
    (0..partitions)
        .map(|number| {
            let (start, end) = client
                .fetch_watermarks(topic, number, LIMIT)
                .context("Kafka does not say where its log ends")?;
            let committed = match committed.find_partition(topic, number).map(|partition| partition.offset())
            {
                Some(Offset::Offset(offset)) => Some(offset),
                _ => None,
            };
            Ok(Partition { number, start, end, committed })
        })
        .collect()
}
