//! A key that only you can read, tombstones, and messages that can never be right.
//!
//! Needs nothing installed: `cargo run --example own_key`

use handstamp::{BoxError, Json, Key, KeyError, Message, idempotent, reject};
use serde::Deserialize;
use sqlx::SqliteConnection;
use sqlx::sqlite::SqlitePoolOptions;

#[derive(Deserialize)]
struct Price {
    cents: i64,
}

/// `price/<sku>/<version>`: a SKU has many versions, and each is an event. An error parks the message:
/// a key is never guessed.
fn version(message: &Message) -> Result<Key, KeyError> {
    let key = message.key().ok_or_else(|| KeyError::new("no message key"))?;
    let version =
        key.strip_prefix(b"price/").ok_or_else(|| KeyError::new("expected price/<sku>/<version>"))?;
    Key::bytes(version)
}

/// `None` is a tombstone: the price is gone.
#[idempotent(consumer = "prices", key = with(version))]
async fn price(price: Option<Json<Price>>, conn: &mut SqliteConnection) -> Result<(), BoxError> {
    let cents = match price {
        Some(Json(Price { cents })) if cents <= 0 => return Err(reject("a price is positive").into()),
        Some(Json(Price { cents })) => Some(cents),
        None => None,
    };
    sqlx::query("UPDATE products SET cents = ?").bind(cents).execute(conn).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
    handstamp::migrate(&pool).await?;
    sqlx::raw_sql("CREATE TABLE products (cents INTEGER); INSERT INTO products VALUES (100)")
        .execute(&pool)
        .await?;
    let message = |key: &str| Message::builder().key(key);
    for message in [
        message("price/umbrella/1").payload(r#"{"cents": 250}"#).build(),
        message("price/umbrella/1").payload(r#"{"cents": 250}"#).build(), // a duplicate
        message("price/umbrella/2").payload(r#"{"cents": -1}"#).build(),  // rejected: parked, not retried
        message("umbrella").payload(r#"{"cents": 300}"#).build(),         // no key: parked
        message("price/umbrella/3").build(),                              // a tombstone
    ] {
        let disposition = handstamp::apply::<price>(&pool, &message).await?;
        let cents: Option<i64> = sqlx::query_scalar("SELECT cents FROM products").fetch_one(&pool).await?;
        println!("{disposition:?}: the price is {cents:?}");
    }
    Ok(())
}
