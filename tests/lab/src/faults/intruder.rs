use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use handstamp_tests::TestTopic;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use super::member::PATIENCE;

/// A member of a group that is no worker. It reads a topic of its own, so that it takes no partition from
/// anybody, but a broker takes any member's word for any partition.
pub struct Intruder {
    consumer: Arc<BaseConsumer>,
    leaving: Arc<AtomicBool>,
    polling: Option<JoinHandle<()>>,
    topic: TestTopic,
}

impl Intruder {
    pub async fn join(brokers: &str, group: &str) -> Result<Self> {
        let topic = TestTopic::on(brokers, 1).await;
        let consumer: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", brokers)
            .set("group.id", group)
            .set("enable.auto.commit", "false")
            .set("session.timeout.ms", "6000")
            .set("heartbeat.interval.ms", "200")
            .create()?;
        consumer.subscribe(&[topic.name()])?;
        let (consumer, leaving) = (Arc::new(consumer), Arc::new(AtomicBool::new(false)));
        let polling = thread::spawn({
            let (consumer, leaving) = (Arc::clone(&consumer), Arc::clone(&leaving));
            move || {
                while !leaving.load(Ordering::Acquire) {
                    // Nothing is ever written to its topic, and errors of a rebalance pass.
                    let _nothing = consumer.poll(Duration::from_millis(20));
                }
            }
        });
        Ok(Self { consumer, leaving, polling: Some(polling), topic })
    }

    /// Commits these offsets, as soon as the group lets a member do so.
    pub async fn commit(&self, topic: &str, offsets: &[(i32, i64)]) -> Result<()> {
        let mut list = TopicPartitionList::new();
        for (partition, next) in offsets {
            list.add_partition_offset(topic, *partition, Offset::Offset(*next))?;
        }
        let mut failure = None;
        let committed = async {
            loop {
                let (consumer, list) = (Arc::clone(&self.consumer), list.clone());
                match spawn_blocking(move || commit_as_member(&consumer, &list)).await.expect("no panic") {
                    Ok(()) => break,
                    Err(error) => failure = Some(error),
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        let committed = timeout(PATIENCE, committed).await;
        committed.with_context(|| format!("the group takes no offsets from its member: {failure:?}"))
    }

    /// Leaves the group.
    pub async fn leave(mut self) {
        self.leaving.store(true, Ordering::Release);
        let polling = self.polling.take();
        let ended = spawn_blocking(move || polling.map(JoinHandle::join).transpose()).await;
        ended.expect("no panic").expect("polling does not panic");
        self.topic.delete().await;
        spawn_blocking(move || drop(self)).await.expect("a client can be closed");
    }
}

impl Drop for Intruder {
    fn drop(&mut self) {
        self.leaving.store(true, Ordering::Release);
    }
}

/// A commit that the group refuses makes librdkafka join anew: while it joins, another one would only start
/// that again.
fn commit_as_member(consumer: &BaseConsumer, list: &TopicPartitionList) -> Result<()> {
    ensure!(consumer.assignment()?.count() > 0, "it has no partition yet");
    Ok(consumer.commit(list, CommitMode::Sync)?)
}
