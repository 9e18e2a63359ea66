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

#[cfg(test)]
mod tests {
    use sqlx::Connection;

    use super::*;
    use crate::database::SCHEMA;

    /// Two events of 5 for account 0, both applied; then `damage`.
    async fn counted_after(damage: &'static str) -> Counts {
        sqlx::any::install_default_drivers();
        let mut connection = AnyConnection::connect("sqlite::memory:").await.expect("in memory");
        for statement in SCHEMA.into_iter().chain([
            "INSERT INTO ledger VALUES ('a', 0, 5), ('b', 0, 5)",
            "INSERT INTO effects VALUES ('a', 0, 5), ('b', 0, 5)",
            "INSERT INTO accounts VALUES (0, 10), (1, 0)",
            damage,
        ]) {
            sqlx::query(statement).execute(&mut connection).await.expect(statement);
        }
        Counts::read(&mut connection).await.expect("counts")
    }

    #[tokio::test]
    async fn events_applied_once_are_all_there() {
        let counts = counted_after("SELECT 1").await;
        assert_eq!(counts, Counts { events: 2, effects: 2, applied: 2, twice: 0, wrong_balances: 0 });
    }

    #[tokio::test]
    async fn an_effect_that_is_not_there_is_missing() {
        let counts = counted_after("DELETE FROM effects WHERE event = 'a'").await;
        assert_eq!((counts.missing(), counts.twice), (1, 0));
    }

    #[tokio::test]
    async fn an_effect_too_many_is_seen_though_another_is_missing() {
        let counts = counted_after("UPDATE effects SET event = 'b'").await;
        assert_eq!((counts.effects, counts.missing(), counts.twice), (2, 1, 1));
    }

    #[tokio::test]
    async fn a_balance_without_an_event_behind_it_is_wrong() {
        assert_eq!(counted_after("UPDATE accounts SET balance = 5").await.wrong_balances, 2);
    }
}
