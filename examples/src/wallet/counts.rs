//! What the database holds.

use anyhow::Result;
use sqlx::AnyConnection;

/// The ledger of events beside their effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Events that Kafka acknowledged.
    pub events: u64,
    pub effects: u64,
    /// Events with an effect.
    pub applied: u64,
    /// Events with more than one.
    pub twice: u64,
    /// Accounts whose balance is not the sum of their events.
    pub wrong_balances: u64,
}

impl Counts {
    pub async fn read(connection: &mut AnyConnection) -> Result<Self> {
        let mut counts = [0; 5];
        for (count, question) in counts.iter_mut().zip([
            "SELECT COUNT(*) FROM ledger",
            "SELECT COUNT(*) FROM effects",
            "SELECT COUNT(*) FROM ledger WHERE event IN (SELECT event FROM effects)",
            "SELECT COUNT(*) FROM (SELECT event FROM effects GROUP BY event HAVING COUNT(*) > 1) AS twice",
            "SELECT COUNT(*) FROM accounts WHERE balance <> \
             (SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM ledger WHERE account = accounts.id)",
        ]) {
            let answer: i64 = sqlx::query_scalar(question).fetch_one(&mut *connection).await?;
            *count = answer.unsigned_abs();
        }
        let [events, effects, applied, twice, wrong_balances] = counts;
        Ok(Self { events, effects, applied, twice, wrong_balances })
    }

    /// Events without effect.
    pub fn missing(&self) -> u64 {
        self.events.saturating_sub(self.applied)
    }
}
