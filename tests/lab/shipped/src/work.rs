use std::time::Duration;

use sqlx::PgConnection;

use crate::{Deposit, Stall};

/// What every variant does with a deposit, inside the transaction that it opens.
#[derive(Clone, Debug)]
pub struct Work {
    /// How long it takes besides the statements.
    pub pause: Duration,
    /// Which messages take much longer.
    pub stall: Option<Stall>,
}

impl Work {
    /// Raises the balance and leaves a trace. `effects` has no unique key: a second application is there to be seen.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn credit(&self, conn: &mut PgConnection, event: &str, deposit: &Deposit) -> sqlx::Result<()> {
        sqlx::query("UPDATE accounts SET balance = balance + $1 WHERE id = $2")
            .bind(deposit.amount)
            .bind(deposit.account)
            .execute(&mut *conn)
            .await?;
        sqlx::query("INSERT INTO effects (event, account, amount) VALUES ($1, $2, $3)")
            .bind(event)
            .bind(deposit.account)
            .bind(deposit.amount)
            .execute(conn)
            .await?;
        if !self.pause.is_zero() {
            tokio::time::sleep(self.pause).await;
        }
        match &self.stall {
            Some(stall) if stall.picks(deposit.number) => stall.stall_once(event).await,
            _ => Ok(()),
        }
    }
}
