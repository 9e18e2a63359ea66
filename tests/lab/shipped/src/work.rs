use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sqlx::PgConnection;

use crate::{Deposit, Stall};

/// Raises the balance: amount, account.
pub const CREDIT: &str = "UPDATE accounts SET balance = balance + $1 WHERE id = $2";
/// Leaves a trace: event, account, amount. `effects` has no unique key: a second application is there to be seen.
pub const RECORD: &str = "INSERT INTO effects (event, account, amount) VALUES ($1, $2, $3)";

/// What every variant does with a deposit, inside the transaction that it opens.
#[derive(Clone, Debug)]
pub struct Work {
    /// How long it takes besides the statements.
    pub pause: Duration,
    /// Which messages take much longer.
    pub stall: Option<Stall>,
    /// Told by handstamp's handlers when they are called.
    pub on_call: OnCall,
}

/// Something to do at each call; nothing by default.
#[derive(Clone, Default)]
pub struct OnCall(Option<Arc<dyn Fn() + Send + Sync>>);

impl OnCall {
    /// Does this.
    pub fn new(what: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(what)))
    }

    pub(crate) fn tell(&self) {
        if let Some(what) = &self.0 {
            what();
        }
    }
}

impl fmt::Debug for OnCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnCall").field(&self.0.is_some()).finish()
    }
}

impl Work {
    /// Raises the balance and leaves a trace.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn credit(&self, conn: &mut PgConnection, event: &str, deposit: &Deposit) -> sqlx::Result<()> {
        sqlx::query(CREDIT).bind(deposit.amount).bind(deposit.account).execute(&mut *conn).await?;
        sqlx::query(RECORD).bind(event).bind(deposit.account).bind(deposit.amount).execute(conn).await?;
        if !self.pause.is_zero() {
            tokio::time::sleep(self.pause).await;
        }
        match &self.stall {
            Some(stall) if stall.picks(deposit.number) => stall.stall_once(event).await,
            _ => Ok(()),
        }
    }

    /// The same for many at once, without the pause: a statement for all balances and one for all traces.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn credit_all<'a>(
        conn: &mut PgConnection,
        deposits: impl Iterator<Item = (&'a str, &'a Deposit)>,
    ) -> sqlx::Result<()> {
        let (mut events, mut accounts, mut amounts) = (Vec::new(), Vec::new(), Vec::new());
        for (event, deposit) in deposits {
            events.push(event);
            accounts.push(deposit.account);
            amounts.push(deposit.amount);
        }
        sqlx::query(
            "UPDATE accounts SET balance = balance + sums.amount
             FROM (SELECT account, sum(amount)::int8 AS amount
                   FROM unnest($1::int8[], $2::int8[]) AS deposit (account, amount) GROUP BY account) AS sums
             WHERE accounts.id = sums.account",
        )
        .bind(&accounts)
        .bind(&amounts)
        .execute(&mut *conn)
        .await?;
        sqlx::query(
            "INSERT INTO effects (event, account, amount)
             SELECT * FROM unnest($1::text[], $2::int8[], $3::int8[])",
        )
        .bind(&events)
        .bind(&accounts)
        .bind(&amounts)
        .execute(conn)
        .await?;
        Ok(())
    }
}
