//! A database per test.

use std::str::FromStr;
use std::thread;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, PgPool};

use crate::{postgres_url, unique};

/// An empty PostgreSQL database of the test's own; dropped with this value, whoever is still connected.
#[derive(Debug)]
pub struct TestDatabase {
    name: String,
    server: PgConnectOptions,
    pool: PgPool,
}

impl TestDatabase {
    /// On the server that the tests share.
    pub async fn new() -> Self {
        Self::on(&postgres_url()).await
    }

    /// On a given server, such as a [`PrivatePostgres`](crate::PrivatePostgres).
    pub async fn on(url: &str) -> Self {
        let server = PgConnectOptions::from_str(url).expect("the server's URL is a PostgreSQL URL");
        let name = unique("test");
        let create = format!("CREATE DATABASE {name}");
        execute(&server, create).await.unwrap_or_else(|error| panic!("no database at {url}: {error}"));
        let pool = PgPoolOptions::new().max_connections(10).connect_lazy_with(server.clone().database(&name));
        Self { name, server, pool }
    }

    /// On the shared server, with a schema that the closure makes.
    pub async fn migrated<E: std::fmt::Debug>(migrate: impl AsyncFnOnce(&PgPool) -> Result<(), E>) -> Self {
        let database = Self::new().await;
        migrate(&database.pool).await.expect("the schema can be made");
        database
    }

    /// A pool of up to ten connections.
    #[must_use]
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// For pools with other settings, and other roles.
    #[must_use]
    pub fn options(&self) -> PgConnectOptions {
        self.server.clone().database(&self.name)
    }

    /// For other processes.
    #[must_use]
    pub fn url(&self) -> String {
        self.options().to_url_lossy().into()
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let server = self.server.clone();
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        // A thread with a runtime of its own: the test's may be the one that waits here.
        let dropped = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(execute(&server, drop))
        });
        match dropped.join() {
            Ok(Ok(())) => {}
            // Not a panic: the server of a fault test may be down by now.
            Ok(Err(error)) => eprintln!("{} is left behind: {error}", self.name),
            Err(_) => eprintln!("{} is left behind", self.name),
        }
    }
}

async fn execute(server: &PgConnectOptions, statement: String) -> sqlx::Result<()> {
    let mut connection = PgConnection::connect_with(server).await?;
    sqlx::query(AssertSqlSafe(statement)).execute(&mut connection).await?;
    connection.close().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_database_is_gone_after_its_test_even_while_connections_are_open() {
        let database = TestDatabase::new().await;
        let (name, server) = (database.name.clone(), database.server.clone());
        let _open = database.pool().acquire().await.expect("the database answers");
        drop(database);
        let mut connection = PgConnection::connect_with(&server).await.expect("the server answers");
        let left: i64 = sqlx::query_scalar("SELECT count(*) FROM pg_database WHERE datname = $1")
            .bind(name)
            .fetch_one(&mut connection)
            .await
            .expect("the catalog answers");
        assert_eq!(left, 0);
    }

    #[tokio::test]
    async fn a_migrated_database_has_the_schema_before_the_test_starts() {
        let database = TestDatabase::migrated(async |pool: &PgPool| {
            sqlx::query("CREATE TABLE account (balance int8)").execute(pool).await.map(drop)
        })
        .await;
        let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM account")
            .fetch_one(database.pool())
            .await
            .expect("the table is there");
        assert_eq!(rows, 0);
    }
}
