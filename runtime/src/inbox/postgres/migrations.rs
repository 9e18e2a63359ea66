use sqlx::{PgConnection, Postgres};

use crate::migrate::{Migrated, Migration, MigrationStore};

/// "handstmp": an advisory lock, since the table to lock may not be there yet.
const LOCK: i64 = 0x6861_6e64_7374_6d70;

impl MigrationStore for Postgres {
    const MIGRATIONS: &'static [Migration] = &[
        Migration {
            version: 1,
            name: "inbox",
            sql: include_str!("../../../migrations/postgres/0001_inbox.sql"),
        },
        Migration {
            version: 2,
            name: "ahead",
            sql: include_str!("../../../migrations/postgres/0002_ahead.sql"),
        },
    ];

    async fn migrated(connection: &mut PgConnection) -> sqlx::Result<Vec<Migrated>> {
        let exists: bool = sqlx::query_scalar(
            "SELECT EXISTS (SELECT FROM pg_catalog.pg_class c
                            JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                            WHERE n.nspname = 'handstamp' AND c.relname = 'migrations')",
        )
        .fetch_one(&mut *connection)
        .await?;
        if !exists {
            return Ok(Vec::new());
        }
        let rows: Vec<(i32, Option<Vec<u8>>)> =
            sqlx::query_as("SELECT version, checksum FROM handstamp.migrations ORDER BY version")
                .fetch_all(connection)
                .await?;
        Ok(rows.into_iter().map(|(version, checksum)| Migrated { version, checksum }).collect())
    }

    async fn prepare(_: &mut PgConnection) -> sqlx::Result<()> {
        Ok(())
    }

    async fn lock_migrations(connection: &mut PgConnection) -> sqlx::Result<()> {
        // Another migration may take longer than transactions wait for locks otherwise.
        sqlx::query("SELECT set_config('lock_timeout', '25s', true)").execute(&mut *connection).await?;
        sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(LOCK).execute(connection).await?;
        Ok(())
    }

    async fn run(connection: &mut PgConnection, migration: &'static Migration) -> sqlx::Result<()> {
        sqlx::raw_sql(migration.sql).execute(connection).await?;
        Ok(())
    }

    async fn record_checksum(
        connection: &mut PgConnection,
        version: i32,
        checksum: &[u8],
    ) -> sqlx::Result<()> {
        sqlx::query("UPDATE handstamp.migrations SET checksum = $2 WHERE version = $1")
            .bind(version)
            .bind(checksum)
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn missing_right(connection: &mut PgConnection) -> sqlx::Result<String> {
        sqlx::query_scalar(
            "SELECT CASE
                 WHEN NOT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'handstamp')
                 THEN format('CREATE on database %I, which role %I lacks', current_database(), current_user)
                 WHEN NOT has_schema_privilege('handstamp', 'CREATE')
                 THEN format('CREATE on schema handstamp, which role %I lacks', current_user)
                 ELSE format('to own the tables in schema handstamp, which role %I does not', current_user)
             END",
        )
        .fetch_one(connection)
        .await
    }

    fn grants(role: &str) -> String {
        let role = role.replace('"', "\"\"");
        format!(
            r#"
GRANT USAGE ON SCHEMA handstamp TO "{role}";
GRANT SELECT ON handstamp.migrations, handstamp.processed_messages TO "{role}";
GRANT SELECT, INSERT, UPDATE, DELETE
    ON handstamp.consumers, handstamp.inbox, handstamp.progress, handstamp.dead_letters TO "{role}";
"#
        )
    }
}
