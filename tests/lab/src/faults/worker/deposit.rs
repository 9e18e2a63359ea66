use std::time::Duration;

use handstamp::laboratory::{Point, reached};
use handstamp::{BoxError, Inbox, Json, Position, idempotent, reject};
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, Postgres};
use tokio::time::sleep;

use super::mischief::Mischief;
use super::rivalry::Rivalry;

/// How often a message may fail before it is parked.
pub const ATTEMPTS: u32 = 3;

/// What a record of the load asks for.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Deposit {
    pub event: i64,
    pub account: i64,
    pub amount: i64,
    pub trouble: Trouble,
}

/// What the handler does with it besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// Nothing.
    None,
    /// Fails as often as this.
    Fails(u32),
    /// Is never good.
    Rejected,
    /// Works for this many milliseconds.
    Works(u32),
    /// Gets in the way of others that do the same.
    Contends(Rivalry),
    /// Does what a handler must not do.
    Misbehaves(Mischief),
}

/// The handler of most rows.
#[idempotent(consumer = "laboratory", key = header("event_id"), attempts = 3, timeout = "10 s")]
pub async fn deposit(
    Json(deposit): Json<Deposit>,
    position: Position,
    inbox: &mut Inbox<Postgres>,
) -> Result<(), BoxError> {
    let attempt = inbox.attempt();
    deposit.apply(position.partition, position.offset, attempt, inbox).await?;
    reached(Point::InHandler);
    match deposit.trouble {
        Trouble::Rejected => Err(reject("not a deposit").into()),
        Trouble::Works(milliseconds) => {
            sleep(Duration::from_millis(milliseconds.into())).await;
            Ok(())
        }
        Trouble::Contends(rivalry) => Ok(rivalry.act(inbox).await?),
        Trouble::Misbehaves(mischief) => mischief.act(position.partition, position.offset, inbox).await,
        Trouble::Fails(times) if attempt <= times => Err(format!("failure {attempt} of {times}").into()),
        _ => Ok(()),
    }
}

/// The same, one message to a transaction.
#[idempotent(consumer = "laboratory", key = header("event_id"), attempts = 3, timeout = "10 s", batch = 1)]
pub async fn alone(
    message: Json<Deposit>,
    position: Position,
    inbox: &mut Inbox<Postgres>,
) -> Result<(), BoxError> {
    deposit(message, position, inbox).await
}

/// The same, side by side with those of other message keys.
#[idempotent(
    consumer = "laboratory", key = header("event_id"), order = key, attempts = 3, timeout = "10 s"
)]
pub async fn keyed(
    message: Json<Deposit>,
    position: Position,
    inbox: &mut Inbox<Postgres>,
) -> Result<(), BoxError> {
    deposit(message, position, inbox).await
}

impl Deposit {
    /// Writes the effects. Nothing in the tables keeps them from being written twice.
    pub async fn apply(
        &self,
        partition: i32,
        offset: i64,
        attempt: u32,
        connection: &mut PgConnection,
    ) -> sqlx::Result<()> {
        sqlx::query("UPDATE account SET balance = balance + $1 WHERE id = $2")
            .bind(self.amount)
            .bind(self.account)
            .execute(&mut *connection)
            .await?;
        sqlx::query(
            "INSERT INTO effects (event, account, amount, partition, position, process, attempt)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind(self.event)
        .bind(self.account)
        .bind(self.amount)
        .bind(partition)
        .bind(offset)
        .bind(i64::from(std::process::id()))
        .bind(i64::from(attempt))
        .execute(connection)
        .await?;
        Ok(())
    }
}
