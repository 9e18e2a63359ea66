use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaResult;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use sqlx::PgConnection;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use super::ledger::index;
use super::member::PATIENCE;
use super::progress;

const LIMIT: Duration = Duration::from_secs(5);

/// Asks the broker, and changes nothing there.
pub struct Offsets {
    client: Arc<BaseConsumer>,
    topic: String,
    partitions: i32,
}

impl Offsets {
    pub fn of(brokers: &str, group: &str, topic: &str, partitions: i32) -> Self {
        let client = ClientConfig::new()
            .set("bootstrap.servers", brokers)
            // It asks for the group's offsets and never joins.
            .set("group.id", group)
            .set("enable.auto.commit", "false")
            .create()
            .expect("a consumer can be made");
        Self { client: Arc::new(client), topic: topic.to_owned(), partitions }
    }

    /// What the group has committed, by partition.
    pub async fn committed(&self) -> Result<Vec<Option<i64>>> {
        let (topic, partitions) = (self.topic.clone(), self.partitions);
        self.ask(move |client| {
            let mut list = TopicPartitionList::new();
            list.add_partition_range(&topic, 0, partitions - 1);
            let mut committed = vec![None; index(partitions)];
            for element in client.committed_offsets(list, LIMIT)?.elements() {
                element.error()?;
                if let Offset::Offset(next) = element.offset() {
                    committed[index(element.partition())] = Some(next);
                }
            }
            Ok(committed)
        })
        .await
    }

    /// The first offset that a partition still has.
    pub async fn log_start(&self, partition: i32) -> Result<i64> {
        let topic = self.topic.clone();
        self.ask(move |client| Ok(client.fetch_watermarks(&topic, partition, LIMIT)?.0)).await
    }

    /// Waits until these are committed, or more; which of them were before patience ended.
    pub async fn until_committed(&self, wanted: &[(i32, i64)]) -> Result<Vec<i32>> {
        let mut reached = Vec::new();
        let all = async {
            loop {
                let committed = self.committed().await?;
                let is = |(partition, next): &&(i32, i64)| committed[index(*partition)] >= Some(*next);
                reached = wanted.iter().filter(is).map(|(partition, _)| *partition).collect();
                if reached.len() == wanted.len() {
                    return anyhow::Ok(());
                }
                sleep(Duration::from_millis(50)).await;
            }
        };
        if let Ok(asked) = timeout(PATIENCE, all).await {
            asked?;
        }
        Ok(reached)
    }

    /// Waits until no committed offset is ahead of the database; whether that was before patience ended.
    pub async fn until_not_ahead(&self, connection: &mut PgConnection) -> Result<bool> {
        let behind = async {
            loop {
                // First Kafka, then the database, which only grows meanwhile.
                let committed = self.committed().await?;
                let next = progress::next_offsets(connection).await?;
                if committed.iter().zip(&next).all(|(committed, next)| *committed <= Some(*next)) {
                    return anyhow::Ok(());
                }
                sleep(Duration::from_millis(50)).await;
            }
        };
        match timeout(PATIENCE, behind).await {
            Ok(asked) => asked.map(|()| true),
            Err(_) => Ok(false),
        }
    }

    /// A node that was too busy for its own controller leads nothing for a moment: it is asked again.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl Fn(&BaseConsumer) -> KafkaResult<T> + Send + Sync + 'static,
    ) -> Result<T> {
        let question = Arc::new(question);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (client, question) = (Arc::clone(&self.client), Arc::clone(&question));
            match spawn_blocking(move || question(&client)).await.expect("no panic") {
                Ok(answer) => return Ok(answer),
                Err(error) if Instant::now() > deadline => return Err(error.into()),
                Err(_) => sleep(Duration::from_millis(50)).await,
            }
        }
    }
}
