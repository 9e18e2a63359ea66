use std::path::Path;
use std::time::Duration;

use handstamp::internal::dead_letters::{self, DeadLetter};
use handstamp::{Disposition, Kafka, Position, Worker, WorkerBuilder};
use handstamp_tests::{ChildProcess, Record, TestDatabase, TestTopic, kafka_brokers, postgres_url, unique};
use sqlx::{Connection, PgConnection, Postgres};
use tokio::process::Command;

/// How long anything may take that takes a moment on an idle machine.
pub const SOON: Duration = Duration::from_secs(30);

/// A database, a topic and a group of one test's own.
pub struct Scene {
    pub database: TestDatabase,
    pub topic: TestTopic,
    pub group: String,
    brokers: String,
}

impl Scene {
    /// On the servers that the tests share.
    pub async fn new(partitions: i32) -> Self {
        Self::on(&postgres_url(), &kafka_brokers(), partitions).await
    }

    /// On servers that may be stopped.
    pub async fn on(postgres: &str, brokers: &str, partitions: i32) -> Self {
        let database = TestDatabase::on(postgres).await;
        handstamp::migrate(database.pool()).await.expect("the inbox can be made");
        sqlx::query("CREATE TABLE effects (id bigserial, event text NOT NULL, attempt int8 NOT NULL)")
            .execute(database.pool())
            .await
            .expect("a table can be made");
        let topic = TestTopic::on(brokers, partitions).await;
        Self { database, topic, group: unique("group"), brokers: brokers.to_owned() }
    }

    /// Kafka, with sessions that end soon after a process.
    pub fn kafka(&self) -> Kafka {
        Kafka::new(&*self.brokers)
            .property("session.timeout.ms", "1500")
            .property("heartbeat.interval.ms", "200")
    }

    /// A worker of the scene's group, still without handlers.
    pub fn worker(&self) -> WorkerBuilder<Postgres, ()> {
        Worker::builder(self.database.pool().clone()).kafka(self.kafka()).group(&*self.group)
    }

    /// A worker in a process of its own, with the handler `credit`.
    pub fn process(&self, arguments: &[&str]) -> ChildProcess {
        let mut command = Command::new(Path::new(env!("CARGO_BIN_EXE_credits")));
        command
            .args(["--database", &self.database.url(), "--brokers", &self.brokers])
            .args(["--topic", self.topic.name(), "--group", &self.group])
            .args(arguments);
        ChildProcess::spawn(command)
    }

    /// A connection that no worker uses.
    pub async fn connect(&self) -> PgConnection {
        PgConnection::connect_with(&self.database.options()).await.expect("the server answers")
    }

    /// The events whose effects are committed, as often as they are, in the order they were written.
    pub async fn effects(&self) -> Vec<String> {
        let effects = sqlx::query_scalar("SELECT event FROM effects ORDER BY id");
        effects.fetch_all(&mut self.connect().await).await.expect("the server answers")
    }

    /// The attempts that were committed, each once.
    pub async fn attempts(&self) -> Vec<i64> {
        let attempts = sqlx::query_scalar("SELECT DISTINCT attempt FROM effects ORDER BY attempt");
        attempts.fetch_all(&mut self.connect().await).await.expect("the server answers")
    }

    /// How many keys are remembered.
    pub async fn remembered(&self) -> i64 {
        let remembered = sqlx::query_scalar("SELECT count(*) FROM handstamp.inbox");
        remembered.fetch_one(&mut self.connect().await).await.expect("the server answers")
    }

    /// What was given up, oldest first.
    pub async fn dead_letters(&self) -> Vec<DeadLetter> {
        let letters = dead_letters::list(self.database.pool(), None, true, 1_000).await;
        let mut letters = letters.expect("the server answers");
        letters.sort_by_key(|letter| letter.id);
        letters
    }

    /// What the scene's group has committed to Kafka.
    pub async fn committed(&self, partition: i32) -> Option<i64> {
        self.topic.committed_offset(&self.group, partition).await
    }
}

/// A message for `credit`.
pub fn event(id: &str) -> Record {
    Record::new("{}").header("event_id", id)
}

/// `count` messages with ids of their own, spread over the partitions.
pub fn events(count: usize) -> impl Iterator<Item = Record> {
    (0..count).map(|number| event(&event_id(number)).key(event_id(number)))
}

/// The id of one of [`events`].
pub fn event_id(number: usize) -> String {
    format!("evt-{number}")
}

/// How many messages ended like that.
pub fn count(done: &[(Position, Disposition)], disposition: Disposition) -> usize {
    done.iter().filter(|(_, found)| *found == disposition).count()
}
