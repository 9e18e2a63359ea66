//! The database a run works on, and what the demonstration itself keeps in it.

use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result};
use sqlx::AnyConnection;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

use crate::options::{Plan, Services};
use crate::publish::Sent;

/// A database made for one run.
pub struct Database {
    /// What workers connect to.
    pub url: String,
    product: Product,
}

#[derive(Clone, Copy)]
enum Product {
    Postgres,
    Sqlite,
}

/// A worker's connections.
pub enum Pool {
    Postgres(PgPool),
    Sqlite(SqlitePool),
}

pub const SCHEMA: [&str; 3] = [
    "CREATE TABLE accounts (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL)",
    "CREATE TABLE effects (event TEXT NOT NULL, account BIGINT NOT NULL, amount BIGINT NOT NULL)",
    "CREATE TABLE ledger (event TEXT PRIMARY KEY, account BIGINT NOT NULL, amount BIGINT NOT NULL)",
];

impl Database {
    /// Makes the database, still empty: a file in `directory`, or a database of its own on the given server.
    pub async fn create(plan: &Plan, directory: &Path) -> Result<Self> {
        match &plan.services {
            Some(services) => Self::create_on_server(services, &plan.run).await,
            None => Self::create_file(&directory.join("wallet.db")).await,
        }
    }

    /// Makes the tables, and the accounts with nothing on them.
    pub async fn prepare(&self, plan: &Plan) -> Result<()> {
        let mut connection = self.connect().await?;
        for statement in SCHEMA {
            sqlx::query(statement).execute(&mut connection).await?;
        }
        let accounts = (0..plan.accounts).map(|id| format!("({id}, 0)")).collect::<Vec<_>>();
        for rows in accounts.chunks(1_000) {
            let statement = format!("INSERT INTO accounts VALUES {}", rows.join(", "));
            sqlx::query(AssertSqlSafe(statement)).execute(&mut connection).await?;
        }
        if !plan.without_inbox {
            match Pool::connect(&self.url).await? {
                Pool::Postgres(pool) => handstamp::migrate(&pool).await?,
                Pool::Sqlite(pool) => handstamp::migrate(&pool).await?,
            }
        }
        Ok(())
    }

    /// Removes the database from a server that others use. A file goes with its directory.
    pub async fn remove(&self, plan: &Plan) -> Result<()> {
        if let Some(services) = &plan.services {
            let mut connection = PgConnectOptions::from_str(&services.database)?.connect().await?;
            let statement = format!("DROP DATABASE {} WITH (FORCE)", plan.run);
            sqlx::query(AssertSqlSafe(statement)).execute(&mut connection).await?;
        }
        Ok(())
    }

    async fn create_file(path: &Path) -> Result<Self> {
        let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
        // The journal mode is a property of the file, and changing it needs the file to oneself.
        options.clone().journal_mode(SqliteJournalMode::Wal).connect().await?.close().await?;
        Ok(Self { url: options.to_url_lossy().to_string(), product: Product::Sqlite })
    }

    async fn create_on_server(services: &Services, name: &str) -> Result<Self> {
        let options = PgConnectOptions::from_str(&services.database).context(
            "DATABASE_URL is no PostgreSQL URL: expected postgres://user:password@host:port/database",
        )?;
        let mut connection =
            options.connect().await.context("cannot connect to DATABASE_URL: is PostgreSQL up?")?;
        sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {name}")))
            .execute(&mut connection)
            .await
            .context(
                "the run works in a database of its own and could not create it: give the role CREATEDB",
            )?;
        let url = options.database(name).to_url_lossy().to_string();
        Ok(Self { url, product: Product::Postgres })
    }

    /// A connection that shares nothing with the workers.
    pub async fn connect(&self) -> Result<AnyConnection> {
        sqlx::any::install_default_drivers();
        let mut connection =
            AnyConnection::connect(&self.url).await.context("cannot connect to the run's database")?;
        if let Product::Sqlite = self.product {
            sqlx::query("PRAGMA busy_timeout = 30000").execute(&mut connection).await?;
        }
        Ok(connection)
    }

    /// What it is, for people.
    pub async fn name(&self) -> Result<String> {
        let mut connection = self.connect().await?;
        let (name, version) = match self.product {
            Product::Postgres => {
                ("PostgreSQL", "SELECT split_part(current_setting('server_version'), ' ', 1)")
            }
            Product::Sqlite => ("SQLite", "SELECT sqlite_version()"),
        };
        let version: String = sqlx::query_scalar(version).fetch_one(&mut connection).await?;
        Ok(format!("{name} {version}"))
    }
}

/// Writes down what Kafka has acknowledged.
pub async fn enter(ledger: &mut AnyConnection, sent: &[Sent]) -> Result<()> {
    let mut transaction = ledger.begin().await?;
    for rows in sent.chunks(500) {
        let places = (0..rows.len()).map(|i| format!("(${}, ${}, ${})", 3 * i + 1, 3 * i + 2, 3 * i + 3));
        let statement = format!("INSERT INTO ledger VALUES {}", places.collect::<Vec<_>>().join(", "));
        let mut query = sqlx::query(AssertSqlSafe(statement));
        for row in rows {
            query = query.bind(row.event.as_str()).bind(row.deposit.account).bind(row.deposit.amount);
        }
        query.execute(&mut *transaction).await?;
    }
    Ok(transaction.commit().await?)
}

impl Pool {
    pub async fn connect(url: &str) -> Result<Self> {
        // Two are for the runtime, so six handlers may run at a time.
        let connections = 8;
        Ok(if url.starts_with("postgres") {
            Self::Postgres(PgPoolOptions::new().max_connections(connections).connect(url).await?)
        } else {
            let options = SqliteConnectOptions::from_str(url)?
                .journal_mode(SqliteJournalMode::Wal)
                .synchronous(SqliteSynchronous::Full)
                .busy_timeout(Duration::from_secs(30));
            Self::Sqlite(SqlitePoolOptions::new().max_connections(connections).connect_with(options).await?)
        })
    }
}
