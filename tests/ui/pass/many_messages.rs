#![deny(warnings)]

use handstamp::{EventId, Inbox, Json, Position, State, idempotent};
use sqlx::{PgConnection, Postgres};

#[derive(serde::Deserialize)]
struct Deposit {
    amount: i64,
}

#[idempotent(consumer = "credits", key = header("event_id"), batch = 2_000)]
async fn credit(deposits: Vec<Json<Deposit>>, conn: &mut PgConnection) -> sqlx::Result<()> {
    let amounts: Vec<i64> = deposits.iter().map(|Json(deposit)| deposit.amount).collect();
    sqlx::query("INSERT INTO credit (amount) SELECT unnest($1::int8[])").bind(amounts).execute(conn).await?;
    Ok(())
}

type Deposits = Vec<Option<Json<Deposit>>>;

#[idempotent(consumer = "audit", key = position)]
async fn audit(
    State(limit): State<usize>,
    deposits: Deposits,
    ids: Vec<EventId>,
    #[cfg(any())] missing: Vec<Headers>,
    inbox: &mut Inbox<Postgres>,
    positions: Vec<Position>,
) -> sqlx::Result<()> {
    assert!(inbox.key().is_none() && deposits.len() == ids.len() && positions.len() < limit);
    Ok(())
}

fn main() {
    let pool = sqlx::PgPool::connect_lazy;
    let _ = (pool, credit, audit, handstamp::apply::<credit>);
}
