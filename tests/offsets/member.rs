use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::ensure;
use handstamp_tests::eventually;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::KafkaResult;
use rdkafka::topic_partition_list::TopicPartitionListElem;
use rdkafka::{Offset, TopicPartitionList};

use crate::scene::{SOON, Scene};

/// A member of the scene's group that is no worker: it polls, and leaves alone what it is given.
pub struct Member {
    consumer: Arc<BaseConsumer>,
    polling: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    partitions: Arc<Mutex<Vec<i32>>>,
}

impl Member {
    /// Joins, and waits until it has partitions.
    pub async fn join(scene: &Scene, properties: &[(&str, &str)]) -> Self {
        let mut config = scene.client();
        config
            .set("group.id", &scene.group)
            .set("enable.auto.commit", "false")
            .set("session.timeout.ms", "6000")
            .set("heartbeat.interval.ms", "200");
        for (property, value) in properties {
            config.set(*property, *value);
        }
        let consumer: BaseConsumer = config.create().expect("a consumer can be made");
        consumer.subscribe(&[scene.topic.name()]).expect("a topic can be subscribed to");
        let (consumer, polling) = (Arc::new(consumer), Arc::new(AtomicBool::new(true)));
        let partitions = Arc::default();
        let thread = thread::spawn({
            let (consumer, polling, partitions) =
                (Arc::clone(&consumer), Arc::clone(&polling), Arc::clone(&partitions));
            move || poll(&consumer, &polling, &partitions)
        });
        let member = Self { consumer, polling, thread: Some(thread), partitions };
        eventually(SOON, async || {
            ensure!(!member.partitions().is_empty(), "it has no partitions");
            Ok(())
        })
        .await;
        member
    }

    /// What it has been given.
    pub fn partitions(&self) -> Vec<i32> {
        self.partitions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn commit(&self, topic: &str, partition: i32, next: i64, mode: CommitMode) -> KafkaResult<()> {
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, partition, Offset::Offset(next))?;
        self.consumer.commit(&list, mode)
    }

    /// Polls no more: it is still alive, and answers no rebalance.
    pub fn fall_silent(&mut self) {
        self.polling.store(false, Ordering::Release);
        self.thread.take().map(JoinHandle::join).transpose().expect("no panic");
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.fall_silent();
    }
}

fn poll(consumer: &BaseConsumer, polling: &AtomicBool, partitions: &Mutex<Vec<i32>>) {
    while polling.load(Ordering::Acquire) {
        // What it reads is nobody's concern, and a fenced member has only errors to give.
        let _read = consumer.poll(Duration::from_millis(20));
        let Ok(assigned) = consumer.assignment() else { continue };
        let assigned = assigned.elements().iter().map(TopicPartitionListElem::partition).collect();
        *partitions.lock().unwrap_or_else(PoisonError::into_inner) = assigned;
    }
}
