//! A topic per test.

use std::time::{Duration, Instant};

use anyhow::ensure;
use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, NewPartitions, NewTopic, ResourceSpecifier, TopicReplication,
};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::{KafkaResult, RDKafkaErrorCode};
use rdkafka::message::{Header, Headers, OwnedHeaders};
use rdkafka::producer::{DeliveryFuture, FutureProducer, FutureRecord, Producer};
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};
use tokio::task::spawn_blocking;

use crate::{Record, eventually, kafka_brokers, raw_producer, unique};

const TIMEOUT: Duration = Duration::from_secs(30);

/// A topic with a name of its own. It stays when the test ends: `tests/services purge` deletes it.
pub struct TestTopic {
    name: String,
    config: ClientConfig,
    producer: FutureProducer,
}

impl TestTopic {
    /// On the broker that the tests share.
    pub async fn create(partitions: i32) -> Self {
        Self::with(partitions, &[]).await
    }

    /// The same with topic properties, such as `("cleanup.policy", "compact")`.
    pub async fn with(partitions: i32, properties: &[(&str, &str)]) -> Self {
        let topic = Self::named(&kafka_brokers(), &unique("topic"));
        topic.create_with(partitions, properties).await;
        topic
    }

    /// On a given broker, such as a [`PrivateKafka`](crate::PrivateKafka).
    pub async fn on(brokers: &str, partitions: i32) -> Self {
        let topic = Self::named(brokers, &unique("topic"));
        topic.create_with(partitions, &[]).await;
        topic
    }

    /// A topic that is made elsewhere, or never.
    #[must_use]
    pub fn named(brokers: &str, name: &str) -> Self {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", brokers)
            // The default of 10 s would add to every wait for a restarted broker.
            .set("reconnect.backoff.max.ms", "1000");
        let producer = producer_config(&config).create().expect("a producer can be made");
        Self { name: name.to_owned(), config, producer }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes a topic that was only [`named`](Self::named) so far.
    pub async fn make(&self, partitions: i32) {
        self.create_with(partitions, &[]).await;
    }

    /// Sets one of its properties; those that are not set go back to what the broker has for all topics.
    pub async fn configure(&self, property: &str, value: &str) {
        let change = AlterConfig::new(ResourceSpecifier::Topic(&self.name)).set(property, value);
        let results = self.admin().alter_configs([&change], &options()).await;
        for result in results.unwrap_or_else(|error| panic!("cannot set {property}: {error}")) {
            result.unwrap_or_else(|(topic, error)| panic!("cannot set {property} of {topic:?}: {error}"));
        }
    }

    /// Deletes it, and waits until the broker has forgotten it.
    pub async fn delete(&self) {
        let results = self.admin().delete_topics(&[&self.name], &options()).await;
        each(results, "delete the topic");
        self.has_partitions(0).await;
    }

    /// Deletes it and makes it anew, empty and with another topic id.
    pub async fn recreate(&self, partitions: i32) {
        self.delete().await;
        self.create_with(partitions, &[]).await;
    }

    /// Raises the number of partitions to `total`.
    pub async fn create_partitions(&self, total: i32) {
        let total = topic_size(total);
        let results =
            self.admin().create_partitions(&[NewPartitions::new(&self.name, total)], &options()).await;
        each(results, "add partitions");
        self.has_partitions(total).await;
    }

    /// Deletes the records of a partition below `offset`: the log then starts there.
    pub async fn delete_records_before(&self, partition: i32, offset: i64) {
        let list = self.at(partition, Offset::Offset(offset));
        // A node that was too busy for its own controller leads nothing for a moment.
        eventually(TIMEOUT, async || {
            let deleted = self.admin().delete_records(&list, &options()).await?;
            for partition in deleted.elements() {
                partition.error()?;
            }
            Ok(())
        })
        .await;
    }

    /// Writes a record, and returns its partition and offset once it is acknowledged.
    pub async fn produce(&self, record: Record) -> (i32, i64) {
        self.produce_all([record]).await.remove(0)
    }

    /// Writes records, in order within each partition, and returns the partition and offset of each.
    pub async fn produce_all(&self, records: impl IntoIterator<Item = Record>) -> Vec<(i32, i64)> {
        let mut written = Vec::new();
        let mut sent = Vec::new();
        for record in records {
            if record.headers.iter().all(|(name, _)| is_text(name)) {
                sent.push(self.send(&record));
            } else {
                // Another producer writes it, so what came before must be there first.
                acknowledged(&mut sent, &mut written).await;
                written.push(self.produce_raw(record).await);
            }
        }
        acknowledged(&mut sent, &mut written).await;
        written
    }

    /// Reads what is there, partition by partition, from the start of the log to its end.
    ///
    /// A header name that is not UTF-8 panics: rdkafka cannot read it.
    pub async fn read_all(&self) -> Vec<Record> {
        let mut records = Vec::new();
        let partitions = self.partitions().await.expect("the broker tells its metadata");
        for partition in 0..i32::try_from(partitions).expect("partitions are numbered by i32") {
            let (start, end) = self.watermarks(partition).await;
            if start == end {
                continue;
            }
            let (consumer, list) =
                (self.consumer(&unique("reader")), self.at(partition, Offset::Offset(start)));
            records.extend(spawn_blocking(move || read(&consumer, &list, end)).await.expect("no panic"));
        }
        records
    }

    /// The offset that the next record of a partition gets.
    pub async fn end_offset(&self, partition: i32) -> i64 {
        self.watermarks(partition).await.1
    }

    /// The offset of the first record of a partition that is still there.
    pub async fn start_offset(&self, partition: i32) -> i64 {
        self.watermarks(partition).await.0
    }

    /// What a group has committed for a partition.
    pub async fn committed_offset(&self, group: &str, partition: i32) -> Option<i64> {
        let (consumer, list) = (self.consumer(group), self.at(partition, Offset::Invalid));
        let committed = spawn_blocking(move || consumer.committed_offsets(list, TIMEOUT)).await;
        let committed = committed.expect("no panic").expect("the broker tells committed offsets");
        committed.elements()[0].offset().to_raw().filter(|offset| *offset >= 0)
    }

    /// Commits an offset for a group that has no members.
    pub async fn commit_offset(&self, group: &str, partition: i32, offset: i64) {
        let (consumer, list) = (self.consumer(group), self.at(partition, Offset::Offset(offset)));
        let committed = spawn_blocking(move || consumer.commit(&list, CommitMode::Sync)).await;
        committed.expect("no panic").expect("the broker takes an offset for a group without members");
    }

    async fn create_with(&self, partitions: i32, properties: &[(&str, &str)]) {
        let mut topic = NewTopic::new(&self.name, partitions, TopicReplication::Fixed(1));
        topic.config = properties.to_vec();
        // A node that was too busy for its own controller has no place for a topic for a moment.
        eventually(TIMEOUT, async || {
            let results = self.admin().create_topics([&topic], &options()).await;
            let busy =
                matches!(results.as_deref(), Ok([Err((_, RDKafkaErrorCode::InvalidReplicationFactor))]));
            ensure!(!busy, "there is no broker to make {} on", self.name);
            each(results, "create the topic");
            Ok(())
        })
        .await;
        self.has_partitions(topic_size(partitions)).await;
    }

    /// Waits until the producer sees the change: it asks on its own only every few minutes.
    async fn has_partitions(&self, expected: usize) {
        eventually(TIMEOUT, async || {
            let partitions = self.partitions().await?;
            ensure!(partitions == expected, "{} has {partitions} partitions, not {expected}", self.name);
            Ok(())
        })
        .await;
    }

    async fn partitions(&self) -> anyhow::Result<usize> {
        let (name, producer) = (self.name.clone(), self.producer.clone());
        let metadata =
            spawn_blocking(move || producer.client().fetch_metadata(Some(&name), TIMEOUT)).await??;
        Ok(metadata.topics().iter().map(|topic| topic.partitions().len()).sum())
    }

    async fn watermarks(&self, partition: i32) -> (i64, i64) {
        // A node that was too busy for its own controller leads nothing for a moment, and a client may remember
        // that.
        eventually(TIMEOUT, async || {
            let (name, consumer) = (self.name.clone(), self.consumer("watermarks"));
            let asked = spawn_blocking(move || consumer.fetch_watermarks(&name, partition, TIMEOUT));
            Ok(asked.await.expect("no panic")?)
        })
        .await
    }

    fn send(&self, record: &Record) -> DeliveryFuture {
        let headers = record.headers.iter().fold(OwnedHeaders::new(), |headers, (name, value)| {
            let key = str::from_utf8(name).expect("names that are not text go another way");
            headers.insert(Header { key, value: value.as_ref() })
        });
        let message = FutureRecord {
            topic: &self.name,
            partition: record.partition,
            payload: record.payload.as_ref(),
            key: record.key.as_ref(),
            timestamp: None,
            headers: Some(headers),
        };
        self.producer.send_result(message).unwrap_or_else(|(error, _)| panic!("not sent: {error}"))
    }

    async fn produce_raw(&self, record: Record) -> (i32, i64) {
        let (config, name) = (producer_config(&self.config), self.name.clone());
        spawn_blocking(move || raw_producer::produce(&config, &name, &record)).await.expect("no panic")
    }

    fn admin(&self) -> AdminClient<DefaultClientContext> {
        self.config.create().expect("an admin client can be made")
    }

    fn consumer(&self, group: &str) -> BaseConsumer {
        let mut config = self.config.clone();
        config.set("group.id", group).set("enable.auto.commit", "false");
        config.create().expect("a consumer can be made")
    }

    fn at(&self, partition: i32, offset: Offset) -> TopicPartitionList {
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&self.name, partition, offset).expect("an offset is 0 or more");
        list
    }
}

async fn acknowledged(sent: &mut Vec<DeliveryFuture>, written: &mut Vec<(i32, i64)>) {
    for delivery in sent.drain(..) {
        let delivery = delivery.await.expect("the producer lives");
        let delivery = delivery.unwrap_or_else(|(error, _)| panic!("not delivered: {error}"));
        written.push((delivery.partition, delivery.offset));
    }
}

fn producer_config(config: &ClientConfig) -> ClientConfig {
    let mut config = config.clone();
    config.set("enable.idempotence", "true").set("queue.buffering.max.messages", "1000000");
    config
}

fn topic_size(partitions: i32) -> usize {
    usize::try_from(partitions).expect("a topic has one partition or more")
}

fn options() -> AdminOptions {
    AdminOptions::new().operation_timeout(Some(TIMEOUT))
}

/// What rdkafka can write as the name of a header.
fn is_text(name: &[u8]) -> bool {
    str::from_utf8(name).is_ok() && !name.contains(&0)
}

fn each(results: KafkaResult<Vec<Result<String, (String, RDKafkaErrorCode)>>>, what: &str) {
    for result in results.unwrap_or_else(|error| panic!("cannot {what}: {error}")) {
        result.unwrap_or_else(|(topic, error)| panic!("cannot {what} {topic}: {error}"));
    }
}

fn read(consumer: &BaseConsumer, list: &TopicPartitionList, end: i64) -> Vec<Record> {
    consumer.assign(list).expect("a partition can be assigned");
    let (mut records, deadline) = (Vec::new(), Instant::now() + TIMEOUT);
    // Not until there are enough records: transaction markers and compaction leave gaps.
    loop {
        let position = consumer.position().expect("a consumer knows its position");
        if position.elements()[0].offset().to_raw().is_some_and(|offset| offset >= end) {
            return records;
        }
        let Some(message) = consumer.poll(Duration::from_millis(100)) else { continue };
        let message = match message {
            Ok(message) => message,
            // A broker that was too busy to answer, or is restarted: the client connects again by itself.
            Err(error) if error.rdkafka_error_code() == Some(RDKafkaErrorCode::AllBrokersDown) => {
                assert!(Instant::now() < deadline, "the log cannot be read: {error}");
                continue;
            }
            Err(error) => panic!("the log cannot be read: {error}"),
        };
        records.push(Record {
            partition: Some(message.partition()),
            key: message.key().map(<[u8]>::to_vec),
            payload: message.payload().map(<[u8]>::to_vec),
            headers: message.headers().map_or_else(Vec::new, |headers| {
                let header = |header: Header<'_, &[u8]>| {
                    (header.key.as_bytes().to_vec(), header.value.map(<[u8]>::to_vec))
                };
                headers.iter().map(header).collect()
            }),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn records_are_read_as_they_were_written() {
        let topic = TestTopic::create(2).await;
        let records = [
            Record::new("first").partition(0).key("k").header("event_id", "1").header("event_id", "2"),
            Record::tombstone().partition(0).key("").null_header("event_id"),
            Record::new("").partition(1).header("trace", [0xff, 0x00]),
        ];
        let written = topic.produce_all(records.clone()).await;
        assert_eq!(written, [(0, 0), (0, 1), (1, 0)]);
        assert_eq!(topic.read_all().await, records);
    }

    #[tokio::test]
    async fn header_names_that_are_not_text_can_be_written_in_order() {
        let topic = TestTopic::create(1).await;
        let record = |name: &[u8]| Record::new("x").partition(0).header(name, "1");
        let written =
            topic.produce_all([record(b"a"), record(b"\xff\xfe"), record(b"a\0b"), record(b"c")]).await;
        assert_eq!(written, [(0, 0), (0, 1), (0, 2), (0, 3)]);
    }

    #[tokio::test]
    async fn offsets_of_an_empty_group_can_be_set_and_read() {
        let topic = TestTopic::create(1).await;
        let group = unique("group");
        assert_eq!(topic.committed_offset(&group, 0).await, None);
        topic.commit_offset(&group, 0, 7).await;
        assert_eq!(topic.committed_offset(&group, 0).await, Some(7));
    }

    #[tokio::test]
    async fn a_recreated_topic_is_empty() {
        let topic = TestTopic::create(1).await;
        topic.produce(Record::new("x")).await;
        assert_eq!(topic.end_offset(0).await, 1);
        topic.recreate(3).await;
        assert_eq!(topic.read_all().await, []);
        assert_eq!(topic.produce(Record::new("y").partition(2)).await, (2, 0));
    }

    #[tokio::test]
    async fn deleted_records_are_gone_and_added_partitions_are_there() {
        let topic = TestTopic::create(1).await;
        topic.produce_all(["a", "b", "c"].map(Record::new)).await;
        topic.delete_records_before(0, 2).await;
        topic.create_partitions(2).await;
        topic.produce(Record::new("d").partition(1)).await;
        assert_eq!(topic.read_all().await, [Record::new("c").partition(0), Record::new("d").partition(1)]);
    }
}
