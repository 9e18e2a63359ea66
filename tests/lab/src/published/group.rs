//! What Kafka says of a consumer group, asked by somebody who is not a member.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{ClientConfig, TopicPartitionList};
use tokio::task::spawn_blocking;

use super::feed::PARTITIONS;

const LIMIT: Duration = Duration::from_secs(30);

pub struct Group {
    client: Arc<BaseConsumer>,
    topic: Arc<str>,
}

impl Group {
    pub fn of(name: &str, topic: &str) -> Result<Self> {
        let client = ClientConfig::new()
            .set("bootstrap.servers", handstamp_tests::kafka_brokers())
            .set("group.id", name)
            .create()
            .context("no Kafka client can be made")?;
        Ok(Self { client: Arc::new(client), topic: topic.into() })
    }

    /// How many messages lie below the group's committed offsets, unless Kafka is too busy to tell. The logs start
    /// at 0 and have no gaps.
    pub async fn committed(&self) -> Result<Option<u64>> {
        let (client, topic) = (Arc::clone(&self.client), Arc::clone(&self.topic));
        let asked = spawn_blocking(move || {
            let mut list = TopicPartitionList::new();
            list.add_partition_range(&topic, 0, PARTITIONS - 1);
            client.committed_offsets(list, LIMIT)
        });
        let Ok(list) = asked.await? else { return Ok(None) };
        let offsets = list.elements_for_topic(&self.topic).into_iter().map(|element| element.offset());
        Ok(Some(offsets.filter_map(|offset| u64::try_from(offset.to_raw()?).ok()).sum()))
    }
}
