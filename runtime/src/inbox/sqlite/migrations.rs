use std::time::{Duration, Instant};

use sqlx::{Sqlite, SqliteConnection};

use crate::migrate::{Migrated, Migration, MigrationStore};

const MODE_LIMIT: Duration = Duration::from_secs(10);

impl MigrationStore for Sqlite {
    const MIGRATIONS: &'static [Migration] = &[
        Migration {
            version: 1,
            name: "inbox",
            sql: include_str!("../../../migrations/sqlite/0001_inbox.sql"),
        },
        Migration {
            version: 2,
            name: "ahead",
            sql: include_str!("../../../migrations/sqlite/0002_ahead.sql"),
        },
    ];

    async fn migrated(connection: &mut SqliteConnection) -> sqlx::Result<Vec<Migrated>> {
        let exists: bool = sqlx::query_scalar(
            "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'handstamp_migrations')",
        )
        .fetch_one(&mut *connection)
        .await?;
        if !exists {
            return Ok(Vec::new());
        }
        let rows: Vec<(i32, Option<Vec<u8>>)> =
            sqlx::query_as("SELECT version, checksum FROM handstamp_migrations ORDER BY version")
                .fetch_all(connection)
                .await?;
        Ok(rows.into_iter().map(|(version, checksum)| Migrated { version, checksum }).collect())
    }

    /// Readers and the writer do not wait for each other in WAL; the mode stays with the file.
    ///
    /// No busy timeout helps where several change the mode at once, so this waits for the others itself.
    async fn prepare(connection: &mut SqliteConnection) -> sqlx::Result<()> {
        let deadline = Instant::now() + MODE_LIMIT;
        loop {
            let Err(error) = sqlx::query("PRAGMA journal_mode = WAL").execute(&mut *connection).await else {
                return Ok(());
            };
            if !is_busy(&error) || Instant::now() >= deadline {
                return Err(error);
            }
            // Apart from each other, or they would meet again.
            let apart = u64::from(deadline.saturating_duration_since(Instant::now()).subsec_nanos() % 20);
            tokio::time::sleep(Duration::from_millis(5 + apart)).await;
        }
    }

    /// There is one writer at a time, and this is it since BEGIN IMMEDIATE.
    async fn lock_migrations(_: &mut SqliteConnection) -> sqlx::Result<()> {
        Ok(())
    }

    async fn run(connection: &mut SqliteConnection, migration: &'static Migration) -> sqlx::Result<()> {
        sqlx::raw_sql(migration.sql).execute(connection).await?;
        Ok(())
    }

    async fn record_checksum(
        connection: &mut SqliteConnection,
        version: i32,
        checksum: &[u8],
    ) -> sqlx::Result<()> {
        sqlx::query("UPDATE handstamp_migrations SET checksum = ?2 WHERE version = ?1")
            .bind(version)
            .bind(checksum)
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn missing_right(_: &mut SqliteConnection) -> sqlx::Result<String> {
        Ok("to write to the database file".to_owned())
    }

    /// SQLite has no roles: who may write to the file may do everything.
    fn grants(_: &str) -> String {
        String::new()
    }
}

/// `SQLITE_BUSY`, whatever its extended part.
fn is_busy(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    code.and_then(|code| code.parse::<u32>().ok()).is_some_and(|code| code & 0xff == 5)
}
