//! The same guarantee without Kafka: a webhook is called twice and applied once.
//!
//! Needs nothing installed: `cargo run --example any_source`

use handstamp::{Json, Message, idempotent};
use serde::Deserialize;
use sqlx::SqliteConnection;
use sqlx::sqlite::SqlitePoolOptions;

#[derive(Deserialize)]
struct Payment {
    order: i64,
    cents: i64,
}

#[idempotent(consumer = "payments", key = header("webhook-id"))]
async fn paid(Json(payment): Json<Payment>, conn: &mut SqliteConnection) -> sqlx::Result<()> {
    sqlx::query("UPDATE orders SET paid = paid + ? WHERE id = ?")
        .bind(payment.cents)
        .bind(payment.order)
        .execute(conn)
        .await?;
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // One connection, since each would have an in-memory database of its own.
    let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
    handstamp::migrate(&pool).await?;
    sqlx::raw_sql("CREATE TABLE orders (id INTEGER PRIMARY KEY, paid INTEGER NOT NULL); INSERT INTO orders VALUES (7, 0)")
        .execute(&pool)
        .await?;

    // What an HTTP handler does with a request: its headers and its body become a message.
    let request =
        Message::builder().header("webhook-id", "evt_1").payload(r#"{"order": 7, "cents": 1250}"#).build();
    for call in ["first", "second"] {
        let disposition = handstamp::apply::<paid>(&pool, &request).await?;
        println!("{call} call: {disposition:?}");
    }

    let paid: i64 = sqlx::query_scalar("SELECT paid FROM orders WHERE id = 7").fetch_one(&pool).await?;
    println!("paid: {paid} cents");
    Ok(())
}
