use std::time::Duration;

use anyhow::{Result, ensure};
use sqlx::PgConnection;
use tokio::time::{sleep, timeout};

use super::member::PATIENCE;
use super::worker::APPLICATION;

/// What the database says is to be read next, by partition.
pub async fn next_offsets(connection: &mut PgConnection) -> Result<Vec<i64>> {
    let rows: Vec<(i32, i64)> =
        sqlx::query_as("SELECT partition, next FROM handstamp.progress ORDER BY partition")
            .fetch_all(connection)
            .await?;
    ensure!((0..).zip(&rows).all(|(at, (partition, _))| at == *partition), "rows are missing: {rows:?}");
    Ok(rows.into_iter().map(|(_, next)| next).collect())
}

/// The same, once the transactions that workers have open now are over: a process that was killed may have
/// left a COMMIT to the server.
pub async fn settled(connection: &mut PgConnection) -> Result<Vec<i64>> {
    let now: String =
        sqlx::query_scalar("SELECT clock_timestamp()::text").fetch_one(&mut *connection).await?;
    timeout(PATIENCE, async {
        loop {
            let open: i64 = sqlx::query_scalar(
                "SELECT count(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND application_name = $1 AND xact_start <= $2::timestamptz",
            )
            .bind(APPLICATION)
            .bind(&now)
            .fetch_one(&mut *connection)
            .await?;
            if open == 0 {
                return next_offsets(connection).await;
            }
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await?
}
