use handstamp::{BoxError, EventId, Inbox, Json, idempotent};
use sqlx::{PgConnection, Postgres};

/// What a message asks of `credit`.
#[derive(Debug, serde::Deserialize)]
pub struct Credit {
    /// To wait for this lock inside the transaction, after the effect was written.
    #[serde(default)]
    gate: Option<i64>,
}

/// The handler of most tests, in this process and in others.
#[idempotent(consumer = "credits", key = header("event_id"), attempts = 3)]
pub async fn credit(
    EventId(event): EventId,
    Json(credit): Json<Credit>,
    inbox: &mut Inbox<Postgres>,
) -> Result<(), BoxError> {
    let attempt = inbox.attempt();
    write_effect(inbox, &event, attempt).await?;
    if let Some(gate) = credit.gate {
        pass(inbox, gate).await?;
    }
    Ok(())
}

/// The same, in the order of message keys alone.
#[idempotent(consumer = "credits", key = header("event_id"), order = key, attempts = 3)]
pub async fn credit_by_key(
    event: EventId,
    asked: Json<Credit>,
    inbox: &mut Inbox<Postgres>,
) -> Result<(), BoxError> {
    credit(event, asked, inbox).await
}

/// Adds a row, whatever is there.
pub async fn write_effect(connection: &mut PgConnection, event: &str, attempt: u32) -> sqlx::Result<()> {
    sqlx::query("INSERT INTO effects (event, attempt) VALUES ($1, $2)")
        .bind(event)
        .bind(i64::from(attempt))
        .execute(connection)
        .await?;
    Ok(())
}

/// Waits until nobody holds the gate, for as long as that takes.
async fn pass(connection: &mut PgConnection, gate: i64) -> sqlx::Result<()> {
    sqlx::query("SELECT set_config('lock_timeout', '0', true)").execute(&mut *connection).await?;
    sqlx::query("SELECT pg_advisory_xact_lock_shared($1)").bind(gate).execute(connection).await?;
    Ok(())
}
