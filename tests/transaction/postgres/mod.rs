use sqlx::Postgres;

use crate::database::Database;

#[path = "../both/delivery.rs"]
mod delivery;
#[path = "../both/handlers.rs"]
mod handlers;

type Connection = sqlx::PgConnection;

async fn new_database() -> Database<Postgres> {
    Database::<Postgres>::new().await
}

/// The events that were applied, in the order of their transactions.
async fn effects(database: &Database<Postgres>) -> Vec<String> {
    sqlx::query_scalar("SELECT event FROM effect ORDER BY ctid").fetch_all(&database.pool).await.unwrap()
}

/// How many keys are remembered.
async fn keys(database: &Database<Postgres>) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM handstamp.inbox").fetch_one(&database.pool).await.unwrap()
}
