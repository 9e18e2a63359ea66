use sqlx::Sqlite;

use crate::database::Database;

#[path = "../both/delivery.rs"]
mod delivery;
#[path = "../both/handlers.rs"]
mod handlers;

type Connection = sqlx::SqliteConnection;

async fn new_database() -> Database<Sqlite> {
    Database::<Sqlite>::new().await
}

/// The events that were applied, in the order of their transactions.
async fn effects(database: &Database<Sqlite>) -> Vec<String> {
    sqlx::query_scalar("SELECT event FROM effect ORDER BY rowid").fetch_all(&database.pool).await.unwrap()
}

/// How many keys are remembered.
async fn keys(database: &Database<Sqlite>) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM handstamp_inbox").fetch_one(&database.pool).await.unwrap()
}
