use std::time::Duration;

use anyhow::ensure;
use handstamp::{Kafka, Notice, Worker, WorkerBuilder};
use handstamp_tests::{Record, Running, TestDatabase, TestTopic, eventually, kafka_brokers, unique};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord};
use sqlx::postgres::PgPoolOptions;
use sqlx::{Connection, PgConnection, PgPool, Postgres};

use crate::ledger::{Gate, ledger};
use crate::log;

/// How long anything may take that takes a moment on an idle machine.
pub const SOON: Duration = Duration::from_secs(30);

/// One test's own database, topic and group.
pub struct Scene {
    pub database: TestDatabase,
    pub topic: TestTopic,
    pub group: String,
    pub brokers: String,
}

impl Scene {
    /// On the servers that the tests share.
    pub async fn new(partitions: i32) -> Self {
        Self::with(TestTopic::create(partitions).await, TestDatabase::new().await).await
    }

    pub async fn with(topic: TestTopic, database: TestDatabase) -> Self {
        log::keep();
        handstamp::migrate(database.pool()).await.expect("the inbox can be made");
        // No unique key: a second application has to show.
        sqlx::query(
            "CREATE TABLE effects (number int8 GENERATED ALWAYS AS IDENTITY, consumer text, event_id text, topic text,
                                   partition int4, \"offset\" int8)",
        )
        .execute(database.pool())
        .await
        .expect("the table can be made");
        Self { database, topic, group: unique("group"), brokers: kafka_brokers() }
    }

    /// Short timeouts, so that what waits for them is quick.
    pub fn kafka(&self) -> Kafka {
        Kafka::new(&self.brokers)
            .property("session.timeout.ms", "1500")
            .property("heartbeat.interval.ms", "200")
            .property("topic.metadata.refresh.interval.ms", "1000")
    }

    /// A worker without handlers, with a pool of its own.
    pub fn builder(&self, kafka: Kafka) -> WorkerBuilder<Postgres, ()> {
        let pool = PgPoolOptions::new().max_connections(8).connect_lazy_with(self.database.options());
        Worker::builder(pool).kafka(kafka).group(&*self.group)
    }

    /// A worker that writes everything into the ledger.
    pub fn worker(&self) -> WorkerBuilder<Postgres, Gate> {
        self.gated(&Gate::open())
    }

    /// The same behind a gate.
    pub fn gated(&self, gate: &Gate) -> WorkerBuilder<Postgres, Gate> {
        self.builder(self.kafka()).state(gate.clone()).consume::<ledger>(self.topic.name())
    }

    /// Writes events with these ids to a partition.
    pub async fn produce(&self, partition: i32, ids: impl IntoIterator<Item = String>) {
        self.topic.produce_all(ids.into_iter().map(|id| event(&id).partition(partition))).await;
    }

    /// Writes one event with a payload that other producers would refuse for its size.
    pub async fn produce_large(&self, bytes: usize, id: &str) {
        let producer: FutureProducer =
            self.client().set("message.max.bytes", "10000000").create().expect("a producer can be made");
        let payload = vec![b'x'; bytes];
        let headers = OwnedHeaders::new().insert(Header { key: "event_id", value: Some(id) });
        let record: FutureRecord<'_, [u8], [u8]> =
            FutureRecord::to(self.topic.name()).partition(0).payload(&payload[..]).headers(headers);
        producer.send(record, SOON).await.expect("the topic takes it");
    }

    pub fn pool(&self) -> &PgPool {
        self.database.pool()
    }

    /// The event ids that a consumer has applied, once for each application, in order.
    pub async fn applied_by(&self, consumer: &str) -> Vec<String> {
        sqlx::query_scalar("SELECT event_id FROM effects WHERE consumer = $1 ORDER BY event_id COLLATE \"C\"")
            .bind(consumer)
            .fetch_all(self.pool())
            .await
            .expect("the oracle can count")
    }

    pub async fn applied(&self) -> Vec<String> {
        self.applied_by("ledger").await
    }

    /// What the database says is to be read next.
    pub async fn progress(&self, partition: i32) -> Option<i64> {
        sqlx::query_scalar("SELECT next FROM handstamp.progress WHERE topic = $1 AND partition = $2")
            .bind(self.topic.name())
            .bind(partition)
            .fetch_optional(self.pool())
            .await
            .expect("the progress can be read")
    }

    /// Runs statements as somebody other than the worker.
    pub async fn execute(&self, statements: &'static str) {
        sqlx::raw_sql(statements).execute(self.pool()).await.expect("the statements run");
    }

    /// A connection that no worker uses.
    pub async fn connect(&self) -> PgConnection {
        PgConnection::connect_with(&self.database.options()).await.expect("the server answers")
    }

    /// Waits until Kafka and the database say that this is to be read next.
    pub async fn until_at(&self, partition: i32, next: i64) {
        eventually(SOON, async || {
            let stored = self.progress(partition).await;
            let committed = self.topic.committed_offset(&self.group, partition).await;
            ensure!(
                (stored, committed) == (Some(next), Some(next)),
                "[{partition}]: the database says {stored:?}, Kafka {committed:?}, and it should be {next}"
            );
            Ok(())
        })
        .await;
    }

    /// Makes Kafka forget the group's offsets. It must have no members.
    pub async fn forget_group(&self) {
        let admin: AdminClient<DefaultClientContext> =
            self.client().create().expect("an admin client can be made");
        let options = AdminOptions::new().operation_timeout(Some(Duration::from_secs(30)));
        let deleted = admin.delete_groups(&[&self.group], &options).await.expect("the broker answers");
        for group in deleted {
            group.expect("the group has no members");
        }
    }

    /// For clients of the test's own.
    pub fn client(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.brokers);
        config
    }
}

/// A record that the ledger takes.
pub fn event(id: &str) -> Record {
    Record::new("{}").header("event_id", id)
}

/// `prefix` and a number for each of the range, in an order that text keeps.
pub fn ids(prefix: &str, numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|number| format!("{prefix}{number:06}")).collect()
}

/// Where a partition is read from, if that is what the notice says.
pub fn started(notice: &Notice) -> Option<(i32, i64)> {
    match notice {
        Notice::Started { position, .. } => Some((position.partition, position.offset)),
        _ => None,
    }
}

/// Waits until this many partitions are read.
pub async fn until_started(running: &mut Running, partitions: usize) {
    for _ in 0..partitions {
        running.next(SOON, |notice| started(notice).is_some()).await;
    }
}

/// Why a partition is not read, if that is what the notice says.
pub fn refused(notice: &Notice) -> Option<(i32, &str)> {
    match notice {
        Notice::Refused { partition, reason, .. } => Some((*partition, reason)),
        _ => None,
    }
}
