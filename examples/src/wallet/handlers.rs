//! The handlers: a credit raises a balance and leaves a trace, in one transaction with its stamp.

use std::time::Duration;

use handstamp::{EventId, Json, State, idempotent};
use serde::{Deserialize, Serialize};

/// Money for an account.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Deposit {
    pub account: i64,
    pub amount: i64,
}

/// How long a handler takes besides its statements.
#[derive(Clone, Copy, Debug)]
pub struct Work(pub Duration);

const RAISE: &str = "UPDATE accounts SET balance = balance + $1 WHERE id = $2";
// `effects` has no unique key: a second application would be there to be seen.
const TRACE: &str = "INSERT INTO effects (event, account, amount) VALUES ($1, $2, $3)";

pub mod postgres {
    use sqlx::PgConnection;

    use super::{Deposit, EventId, Json, RAISE, State, TRACE, Work, idempotent};

    #[idempotent(consumer = "wallet-credits", key = header("event_id"))]
    pub async fn credit(
        Json(deposit): Json<Deposit>,
        EventId(event): EventId,
        State(work): State<Work>,
        conn: &mut PgConnection,
    ) -> sqlx::Result<()> {
        sqlx::query(RAISE).bind(deposit.amount).bind(deposit.account).execute(&mut *conn).await?;
        sqlx::query(TRACE).bind(event).bind(deposit.account).bind(deposit.amount).execute(conn).await?;
        work.done().await;
        Ok(())
    }
}

pub mod sqlite {
    use sqlx::SqliteConnection;

    use super::{Deposit, EventId, Json, RAISE, State, TRACE, Work, idempotent};

    #[idempotent(consumer = "wallet-credits", key = header("event_id"))]
    pub async fn credit(
        Json(deposit): Json<Deposit>,
        EventId(event): EventId,
        State(work): State<Work>,
        conn: &mut SqliteConnection,
    ) -> sqlx::Result<()> {
        sqlx::query(RAISE).bind(deposit.amount).bind(deposit.account).execute(&mut *conn).await?;
        sqlx::query(TRACE).bind(event).bind(deposit.account).bind(deposit.amount).execute(conn).await?;
        work.done().await;
        Ok(())
    }
}

impl Work {
    async fn done(self) {
        if !self.0.is_zero() {
            tokio::time::sleep(self.0).await;
        }
    }
}
