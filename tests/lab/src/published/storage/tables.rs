use anyhow::Result;
use handstamp_tests::TestDatabase;
use indicatif::ProgressBar;
use sqlx::{AssertSqlSafe, PgPool};

use super::ids::Ids;

/// A name as long as a consumer's usually is; it stands in every row and every entry of the plain table's index.
const CONSUMER: &str = "wallet-credits";
/// Ids in one statement. They go into the tables in the order in which they were made, as from consumers.
const BATCH: u64 = 5_000;

/// Bytes per id in a table as it is usually written, without an index for a clean-up.
pub async fn plain(ids: Ids, rows: u64, progress: &ProgressBar) -> Result<f64> {
    let database = TestDatabase::new().await;
    let column = ids.column();
    let create = format!(
        "CREATE TABLE processed_messages (consumer text, message_id {column}, \
         processed_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (consumer, message_id))"
    );
    sqlx::query(AssertSqlSafe(create)).execute(database.pool()).await?;
    let insert = format!(
        "INSERT INTO processed_messages (consumer, message_id) SELECT $2, id::{column} FROM unnest($1::text[]) AS id"
    );
    for batch in batches(rows) {
        let texts: Vec<String> = (0..batch).map(|_| ids.draw().to_string()).collect();
        let insert = sqlx::query(AssertSqlSafe(insert.clone())).bind(texts).bind(CONSUMER);
        insert.execute(database.pool()).await?;
        progress.inc(batch);
    }
    bytes_per_id(database.pool(), "processed_messages", rows).await
}

/// Bytes per id in handstamp's inbox.
pub async fn handstamp(ids: Ids, rows: u64, progress: &ProgressBar) -> Result<f64> {
    let database = TestDatabase::migrated(async |pool: &PgPool| handstamp::migrate(pool).await).await;
    fill_inbox(database.pool(), ids, rows, progress).await?;
    bytes_per_id(database.pool(), "handstamp.inbox", rows).await
}

/// Adds so many ids to handstamp's inbox.
pub async fn fill_inbox(pool: &PgPool, ids: Ids, rows: u64, progress: &ProgressBar) -> Result<()> {
    for batch in batches(rows) {
        let keys = (0..batch).map(|_| ids.stored(ids.draw())).collect::<Result<Vec<_>>>()?;
        // What the claim of a message writes: seconds since 2020, the consumer's number, the key.
        sqlx::query(
            "INSERT INTO handstamp.inbox (at, consumer, key) \
             SELECT extract(epoch FROM now() - '2020-01-01 00:00+00')::int4, 1, key FROM unnest($1::bytea[]) AS key",
        )
        .bind(keys)
        .execute(pool)
        .await?;
        progress.inc(batch);
    }
    Ok(())
}

/// How many ids each statement has.
fn batches(rows: u64) -> impl Iterator<Item = u64> {
    (0..rows).step_by(usize::try_from(BATCH).unwrap_or(usize::MAX)).map(move |from| BATCH.min(rows - from))
}

/// The table and its indexes after VACUUM.
async fn bytes_per_id(pool: &PgPool, table: &str, rows: u64) -> Result<f64> {
    sqlx::query(AssertSqlSafe(format!("VACUUM {table}"))).execute(pool).await?;
    let bytes: i64 =
        sqlx::query_scalar("SELECT pg_total_relation_size($1::regclass)").bind(table).fetch_one(pool).await?;
    let remembered: i64 =
        sqlx::query_scalar(AssertSqlSafe(format!("SELECT count(*) FROM {table}"))).fetch_one(pool).await?;
    anyhow::ensure!(remembered.unsigned_abs() == rows, "{table} has {remembered} rows of {rows}");
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    Ok(bytes as f64 / rows as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_make_up_all_rows() {
        assert_eq!(batches(12_000).collect::<Vec<_>>(), [5_000, 5_000, 2_000]);
    }
}
