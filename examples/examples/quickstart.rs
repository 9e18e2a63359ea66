//! A service: a Kafka topic applied to PostgreSQL, each event once.
//!
//! ```sh
//! KAFKA_BROKERS=localhost:9092 DATABASE_URL=postgres://… cargo run --example quickstart
//! ```

use anyhow::Context;
use handstamp::{Json, Kafka, Worker, idempotent};
use serde::Deserialize;
use sqlx::{PgConnection, PgPool};

#[derive(Deserialize)]
struct Deposit {
    account: i64,
    amount: i64,
}

// The balance and the event's id commit together; only then does the offset move.
#[idempotent(consumer = "quickstart-credits", key = header("event_id"))]
async fn credit(Json(deposit): Json<Deposit>, conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query("UPDATE accounts SET balance = balance + $1 WHERE id = $2")
        .bind(deposit.amount)
        .bind(deposit.account)
        .execute(conn)
        .await?;
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().init();
    let url =
        std::env::var("DATABASE_URL").context("set DATABASE_URL to a PostgreSQL with a table `accounts`")?;
    let pool = PgPool::connect(&url).await?;
    handstamp::migrate(&pool).await?;
    Worker::builder(pool)
        .kafka(Kafka::from_env()?)
        .consume::<credit>("wallet.deposits")
        .run() // until SIGTERM or Ctrl-C
        .await?;
    Ok(())
}
