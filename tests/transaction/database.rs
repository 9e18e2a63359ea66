//! A database per test, with the inbox tables and one table of effects that has no unique key, so that
//! an effect applied twice is seen.

use std::str::FromStr;
use std::time::Duration;

use handstamp::migrate;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, PgConnection, Pool, Postgres, Sqlite};
use uuid::Uuid;

pub const POOL: u32 = 4;

/// How long a test waits for what must happen before it fails.
pub const PATIENCE: Duration = Duration::from_secs(30);

const TABLES: &str = "CREATE TABLE effect (event text NOT NULL);
    CREATE TABLE parent (id integer PRIMARY KEY);
    CREATE TABLE child (parent integer REFERENCES parent DEFERRABLE INITIALLY DEFERRED);";

/// A database of its own, gone when dropped.
pub struct Database<DB: sqlx::Database> {
    pub pool: Pool<DB>,
    name: String,
    _directory: Option<tempfile::TempDir>,
}

pub fn server() -> PgConnectOptions {
    let url = std::env::var("DATABASE_URL")
        .unwrap_or_else(|_| panic!("no services: start them with `tests/services up` or run `tests/run`"));
    PgConnectOptions::from_str(&url).expect("DATABASE_URL is a PostgreSQL URL").disable_statement_logging()
}

impl Database<Postgres> {
    /// An empty one.
    pub async fn empty() -> Self {
        let name = format!("transaction_{}", Uuid::now_v7().simple());
        administer(format!("CREATE DATABASE {name}")).await;
        let pool = PgPoolOptions::new().max_connections(POOL);
        let pool = pool.connect_with(server().database(&name)).await.expect("the new database answers");
        Self { pool, name, _directory: None }
    }

    pub async fn new() -> Self {
        let database = Self::empty().await;
        prepare(&database.pool).await;
        database
    }

    /// A pool that connects as another role or with other settings.
    pub async fn pool_as(
        &self,
        options: impl FnOnce(PgConnectOptions) -> PgConnectOptions,
    ) -> Pool<Postgres> {
        let options = options(server().database(&self.name));
        PgPoolOptions::new().max_connections(POOL).connect_with(options).await.expect("the role connects")
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Database<Sqlite> {
    pub async fn empty() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let options = SqliteConnectOptions::new()
            .filename(directory.path().join("inbox.db"))
            .create_if_missing(true)
            .disable_statement_logging();
        let pool = SqlitePoolOptions::new().max_connections(POOL);
        let pool = pool.connect_with(options).await.expect("the new database opens");
        Self { pool, name: String::new(), _directory: Some(directory) }
    }

    pub async fn new() -> Self {
        let database = Self::empty().await;
        prepare(&database.pool).await;
        database
    }
}

async fn prepare<DB: handstamp::Store>(pool: &Pool<DB>)
where
    for<'a> &'a Pool<DB>: Executor<'a, Database = DB>,
{
    migrate(pool).await.expect("the inbox tables are made");
    pool.execute(sqlx::raw_sql(TABLES)).await.expect("the tables are made");
}

/// Runs a statement on the server's own database.
pub async fn administer(sql: String) {
    let mut connection = PgConnection::connect_with(&server()).await.expect("the server answers");
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.expect("the statement runs");
    connection.close().await.expect("the connection closes");
}

impl<DB: sqlx::Database> Drop for Database<DB> {
    fn drop(&mut self) {
        if self.name.is_empty() {
            return;
        }
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        let dropper = std::thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(administer(drop));
        });
        let _ = dropper.join();
    }
}
