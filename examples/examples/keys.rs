//! What makes two messages the same event: every handler says. `cargo run --example keys`

use handstamp::{Message, idempotent};
use sqlx::SqliteConnection;
use sqlx::sqlite::SqlitePoolOptions;

/// An id that the producer sends along. As text, so two spellings are two events.
#[idempotent(consumer = "header", key = header("event_id"))]
async fn by_header(conn: &mut SqliteConnection) -> sqlx::Result<()> {
    apply("header", conn).await
}

/// The same as a UUID: every spelling is one event, and it is remembered in 16 bytes.
#[idempotent(consumer = "uuid", key = uuid(header("event_id")))]
async fn by_uuid(conn: &mut SqliteConnection) -> sqlx::Result<()> {
    apply("uuid", conn).await
}

/// A business key: one shipment for each parcel of an order, whoever announces it.
#[idempotent(consumer = "parcel", key = json("/order", "/parcel"))]
async fn by_parcel(conn: &mut SqliteConnection) -> sqlx::Result<()> {
    apply("parcel", conn).await
}

/// Parts from different places, joined so that no two pairs give one key.
#[idempotent(consumer = "tenant", key = (header("tenant"), json("/order")))]
async fn by_tenant(conn: &mut SqliteConnection) -> sqlx::Result<()> {
    apply("tenant", conn).await
}

async fn apply(by: &str, conn: &mut SqliteConnection) -> sqlx::Result<()> {
    sqlx::query("INSERT INTO effects VALUES (?)").bind(by).execute(conn).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
    handstamp::migrate(&pool).await?;
    sqlx::query("CREATE TABLE effects (by_key TEXT)").execute(&pool).await?;
    for (event, parcel) in [
        ("0199aaaa-0000-7000-8000-000000000001", 1),
        ("0199AAAA-0000-7000-8000-000000000001", 1), // the same id, spelt otherwise
        ("0199aaaa-0000-7000-8000-000000000002", 2),
    ] {
        let payload = format!(r#"{{"order": 7, "parcel": {parcel}}}"#);
        let message =
            Message::builder().header("event_id", event).header("tenant", "north").payload(payload).build();
        handstamp::apply::<by_header>(&pool, &message).await?;
        handstamp::apply::<by_uuid>(&pool, &message).await?;
        handstamp::apply::<by_parcel>(&pool, &message).await?;
        handstamp::apply::<by_tenant>(&pool, &message).await?;
    }
    let counts = "SELECT by_key, COUNT(*) FROM effects GROUP BY by_key ORDER BY 2 DESC, 1";
    for (key, effects) in sqlx::query_as::<_, (String, i64)>(counts).fetch_all(&pool).await? {
        println!("3 messages by {key}: {effects} applied");
    }
    Ok(())
}
