use handstamp::{BoxError, Effects, EventId, Json, State, idempotent};
use sqlx::PgConnection;

use crate::{CREDIT, Deposit, RECORD, Work};

/// As it is without options.
#[idempotent(consumer = "wallet-credits", key = header("event_id"))]
pub async fn credit(
    EventId(event): EventId,
    Json(deposit): Json<Deposit>,
    State(work): State<Work>,
    conn: &mut PgConnection,
) -> sqlx::Result<()> {
    work.on_call.tell();
    work.credit(conn, &event, &deposit).await
}

/// Each message in a transaction of its own.
#[idempotent(consumer = "wallet-credits", key = header("event_id"), batch = 1)]
pub async fn credit_alone(
    EventId(event): EventId,
    Json(deposit): Json<Deposit>,
    State(work): State<Work>,
    conn: &mut PgConnection,
) -> sqlx::Result<()> {
    work.on_call.tell();
    work.credit(conn, &event, &deposit).await
}

/// All messages of a transaction at once.
#[idempotent(consumer = "wallet-credits", key = header("event_id"), batch = 5_000)]
pub async fn credit_all(
    events: Vec<EventId>,
    deposits: Vec<Json<Deposit>>,
    State(work): State<Work>,
    conn: &mut PgConnection,
) -> sqlx::Result<()> {
    work.on_call.tell();
    let deposits = events.iter().zip(&deposits).map(|(EventId(event), Json(deposit))| (&**event, deposit));
    Work::credit_all(conn, deposits).await
}

/// Each message's statements recorded, for the runtime to write.
#[idempotent(consumer = "wallet-credits", key = header("event_id"))]
pub fn record(
    EventId(event): EventId,
    Json(deposit): Json<Deposit>,
    State(work): State<Work>,
    effects: &mut Effects,
) -> Result<(), BoxError> {
    work.on_call.tell();
    effects.execute(CREDIT, (deposit.amount, deposit.account));
    effects.execute(RECORD, (event, deposit.account, deposit.amount));
    Ok(())
}
