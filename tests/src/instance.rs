//! Servers that one test has to itself, to stop, kill and freeze.

use std::env;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::process::{Command, Output};

use tokio::task::spawn_blocking;

use crate::unique;

/// A service that `tests/services` can start.
pub trait Service {
    /// What `tests/services` calls it.
    const NAME: &str;
    /// The variable that holds its address.
    const ADDRESS: &str;
    /// The variable that holds more settings for it.
    const SETTINGS: &str;
}

/// PostgreSQL, with durable data, as on a server that matters.
#[derive(Debug)]
pub enum Postgres {}

impl Service for Postgres {
    const NAME: &str = "postgres";
    const ADDRESS: &str = "DATABASE_URL";
    const SETTINGS: &str = "POSTGRES_FLAGS";
}

/// A Kafka broker.
#[derive(Debug)]
pub enum Kafka {}

impl Service for Kafka {
    const NAME: &str = "kafka";
    const ADDRESS: &str = "KAFKA_BROKERS";
    const SETTINGS: &str = "KAFKA_PROPERTIES";
}

/// A server of its own, with a state folder of its own. Deleted when dropped.
#[derive(Debug)]
pub struct Private<S: Service> {
    state: PathBuf,
    settings: String,
    address: String,
    service: PhantomData<S>,
}

/// An own PostgreSQL server.
pub type PrivatePostgres = Private<Postgres>;

/// An own Kafka broker.
pub type PrivateKafka = Private<Kafka>;

impl PrivatePostgres {
    /// Starts one with more flags of `postgres`, such as `-c max_connections=20`.
    pub async fn with_flags(flags: &str) -> Self {
        Self::with(flags).await
    }

    /// The URL of a superuser's connection; it stays the same over restarts.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.address
    }

    /// Keeps a copy of the data. The server must be stopped.
    pub async fn snapshot(&self) {
        self.run("snapshot").await;
    }

    /// Puts the copy back: the database is what it was then. The server must be stopped.
    pub async fn restore(&self) {
        self.run("restore").await;
    }
}

impl PrivateKafka {
    /// Starts one with more broker properties, such as `a=b;c=d`.
    pub async fn with_properties(properties: &str) -> Self {
        Self::with(properties).await
    }

    /// Its bootstrap servers; they stay the same over restarts.
    #[must_use]
    pub fn brokers(&self) -> &str {
        &self.address
    }
}

impl<S: Service> Private<S> {
    /// Starts one.
    pub async fn launch() -> Self {
        Self::with("").await
    }

    async fn with(settings: &str) -> Self {
        let shared = env::var_os("SERVICES_DIR").map_or_else(|| root().join(".services"), PathBuf::from);
        // Where `tests/services down` looks for what killed tests left behind.
        let state = shared.join("private").join(unique(S::NAME));
        let mut server =
            Self { state, settings: settings.to_owned(), address: String::new(), service: PhantomData };
        server.run("up").await;
        server.address = server.variable(S::ADDRESS).await;
        server
    }

    /// Stops it: a broker in good order, a database at once, without a checkpoint and with connections cut.
    pub async fn stop(&self) {
        self.run("stop").await;
    }

    /// Kills it with all its processes.
    pub async fn kill(&self) {
        self.run("kill").await;
    }

    /// Starts it again, and waits until it answers.
    pub async fn start(&self) {
        self.run("start").await;
    }

    /// Freezes it with all its processes: connections stay open and nothing answers.
    pub async fn pause(&self) {
        self.run("pause").await;
    }

    /// Ends a [`pause`](Self::pause).
    pub async fn resume(&self) {
        self.run("resume").await;
    }

    async fn run(&self, verb: &str) -> String {
        let mut command = self.command(verb);
        let output = spawn_blocking(move || command.output()).await.expect("no panic");
        let Output { status, stdout, stderr } = output.expect("tests/services can be run");
        assert!(
            status.success(),
            "tests/services --only {} {verb}: {}",
            S::NAME,
            String::from_utf8_lossy(&stderr)
        );
        String::from_utf8_lossy(&stdout).into_owned()
    }

    /// The value of an `export NAME=VALUE` line; addresses need no quoting.
    async fn variable(&self, name: &str) -> String {
        let lines = self.run("env").await;
        let value = lines
            .lines()
            .find_map(|line| line.strip_prefix("export ")?.strip_prefix(name)?.strip_prefix('='));
        value.unwrap_or_else(|| panic!("no {name} in {lines:?}")).to_owned()
    }

    fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(root().join("tests/services"));
        command
            .args(["--only", S::NAME, verb])
            .env("SERVICES_DIR", &self.state)
            .env(S::SETTINGS, &self.settings)
            // They name the shared servers.
            .env_remove("DATABASE_URL")
            .env_remove("KAFKA_BROKERS");
        command
    }
}

impl<S: Service> Drop for Private<S> {
    fn drop(&mut self) {
        let purged = self.command("purge").output().is_ok_and(|output| output.status.success());
        if !purged || std::fs::remove_dir_all(&self.state).is_err() {
            eprintln!("{} is left behind; `tests/services down` removes it", self.state.display());
        }
    }
}

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sqlx::{Connection, PgConnection};
    use tokio::time::timeout;

    use super::*;
    use crate::{Record, TestTopic};

    async fn connect(postgres: &PrivatePostgres) -> PgConnection {
        PgConnection::connect(postgres.url()).await.expect("the server answers")
    }

    async fn execute(postgres: &PrivatePostgres, statement: &'static str) {
        sqlx::query(statement).execute(&mut connect(postgres).await).await.expect("the statement runs");
    }

    async fn count(postgres: &PrivatePostgres) -> i64 {
        let count = sqlx::query_scalar("SELECT count(*) FROM account");
        count.fetch_one(&mut connect(postgres).await).await.expect("the table is there")
    }

    #[tokio::test]
    async fn a_killed_postgres_comes_back_with_what_it_had_committed() {
        let postgres = PrivatePostgres::launch().await;
        execute(&postgres, "CREATE TABLE account AS SELECT 1").await;
        postgres.kill().await;
        assert!(PgConnection::connect(postgres.url()).await.is_err());
        postgres.start().await;
        assert_eq!(count(&postgres).await, 1);
    }

    #[tokio::test]
    async fn a_restored_postgres_has_forgotten_what_came_after_the_snapshot() {
        let postgres = PrivatePostgres::launch().await;
        execute(&postgres, "CREATE TABLE account AS SELECT 1").await;
        postgres.stop().await;
        postgres.snapshot().await;
        postgres.start().await;
        execute(&postgres, "INSERT INTO account VALUES (2)").await;
        postgres.stop().await;
        postgres.restore().await;
        postgres.start().await;
        assert_eq!(count(&postgres).await, 1);
    }

    #[tokio::test]
    async fn a_paused_postgres_answers_after_it_is_resumed() {
        let postgres = PrivatePostgres::with_flags("-c max_connections=20").await;
        let mut connection = connect(&postgres).await;
        postgres.pause().await;
        let mut limit =
            Box::pin(sqlx::query_scalar::<_, String>("SHOW max_connections").fetch_one(&mut connection));
        assert!(timeout(Duration::from_millis(300), &mut limit).await.is_err());
        postgres.resume().await;
        assert_eq!(limit.await.expect("the connection is still open"), "20");
    }

    #[tokio::test]
    async fn a_killed_kafka_comes_back_with_what_it_had_acknowledged() {
        let kafka = PrivateKafka::launch().await;
        let topic = TestTopic::on(kafka.brokers(), 1).await;
        topic.produce(Record::new("before").partition(0)).await;
        kafka.kill().await;
        kafka.start().await;
        assert_eq!(topic.read_all().await, [Record::new("before").partition(0)]);
    }

    #[tokio::test]
    async fn a_dropped_server_leaves_nothing_behind() {
        let postgres = PrivatePostgres::launch().await;
        let (url, state) = (postgres.url().to_owned(), postgres.state.clone());
        drop(postgres);
        assert!(PgConnection::connect(&url).await.is_err());
        assert!(!state.exists());
    }
}
