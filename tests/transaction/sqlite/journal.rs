use std::time::Duration;

use handstamp::{migrate, require_current};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{Connection as _, Executor, SqliteConnection};
use tokio::time::sleep;

/// SQLite itself waits for a lock, but not to change the mode: that fails at once where another connection
/// writes, as several processes do that start together on a new file.
#[tokio::test]
async fn a_first_start_waits_for_others_that_write_before_it_changes_the_mode() {
    let folder = tempfile::tempdir().unwrap();
    let file = SqliteConnectOptions::new().filename(folder.path().join("inbox.db")).create_if_missing(true);
    let mut other = SqliteConnection::connect_with(&file).await.unwrap();
    other.execute("BEGIN IMMEDIATE").await.unwrap();
    let pool = SqlitePoolOptions::new().connect_with(file).await.unwrap();
    let (migrated, ()) = tokio::join!(migrate(&pool), async {
        // What it has to wait for.
        sleep(Duration::from_millis(500)).await;
        other.execute("COMMIT").await.unwrap();
    });
    migrated.unwrap();
    require_current(&pool).await.unwrap();
    let mode: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&pool).await.unwrap();
    assert_eq!(mode, "wal");
}
