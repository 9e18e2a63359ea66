use handstamp::internal::consumers::ConsumerId;
use handstamp::internal::retention::StampedAt;
use sqlx::AssertSqlSafe;

use crate::database::Database;

mod ahead;
#[path = "../both/batches.rs"]
mod batches;
#[path = "../both/bulk.rs"]
mod bulk;
#[path = "../both/delivery.rs"]
mod delivery;
mod effects;
mod faults;
mod fitness;
#[path = "../both/handlers.rs"]
mod handlers;
mod hidden_errors;
mod kept_connections;
#[path = "../both/parking.rs"]
mod parking;
#[path = "../both/progress.rs"]
mod progress;
#[path = "../both/registry.rs"]
mod registry;
#[path = "../both/retention.rs"]
mod retention;
mod rights;
mod round_trips;
#[path = "../both/schema.rs"]
mod schema;
mod settings;
mod silence;
mod sweeps;

type Connection = sqlx::PgConnection;
type Store = sqlx::Postgres;

async fn new_database() -> Database<Store> {
    Database::<Store>::new().await
}

async fn empty_database() -> Database<Store> {
    Database::<Store>::empty().await
}

/// Runs a statement with the inbox's tables in braces.
async fn execute(database: &Database<Store>, sql: &str) {
    let sql = sql.replace('{', "handstamp.").replace('}', "");
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&database.pool).await.unwrap();
}

/// The events that were applied, in the order of their statements.
async fn effects(database: &Database<Store>) -> Vec<String> {
    sqlx::query_scalar("SELECT event FROM effect ORDER BY ctid").fetch_all(&database.pool).await.unwrap()
}

/// How many keys are remembered.
async fn keys(database: &Database<Store>) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM handstamp.inbox").fetch_one(&database.pool).await.unwrap()
}

/// Makes a consumer remember that many keys more, all stamped at that time.
async fn remember(database: &Database<Store>, consumer: ConsumerId, count: i32, at: StampedAt) {
    sqlx::query(
        "INSERT INTO handstamp.inbox (at, consumer, key)
         SELECT $1, $2, '\\x02'::bytea || convert_to(gen_random_uuid()::text, 'UTF8')
         FROM generate_series(1, $3)",
    )
    .bind(at.0)
    .bind(consumer.0)
    .bind(count)
    .execute(&database.pool)
    .await
    .unwrap();
}

/// When the remembered keys were stamped, in the order in which they are stored.
async fn stamps(database: &Database<Store>) -> Vec<StampedAt> {
    let stamps = sqlx::query_scalar("SELECT at FROM handstamp.inbox ORDER BY ctid");
    stamps.fetch_all(&database.pool).await.unwrap().into_iter().map(StampedAt).collect()
}

/// The migrations that the database has had.
async fn versions(database: &Database<Store>) -> Vec<i32> {
    let versions = sqlx::query_scalar("SELECT version FROM handstamp.migrations ORDER BY version");
    versions.fetch_all(&database.pool).await.unwrap()
}
