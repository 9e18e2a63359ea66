//! What the consumers write, and who counts it.

use std::collections::HashMap;

use anyhow::{Context, Result};
use handstamp_tests::TestDatabase;
use serde::Serialize;
use sqlx::{Connection, PgConnection};

use super::feed::{ACCOUNTS, AMOUNT};

const SCHEMA: [&str; 5] = [
    "CREATE TABLE accounts (id int8 PRIMARY KEY, balance int8 NOT NULL)",
    "CREATE TABLE effects (event text NOT NULL, account int8 NOT NULL, amount int8 NOT NULL)",
    "CREATE TABLE stalls (event text PRIMARY KEY)",
    // An inbox as it is usually written.
    "CREATE TABLE processed_messages (consumer text, message_id text, \
     processed_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (consumer, message_id))",
    "INSERT INTO accounts SELECT id, 0 FROM generate_series(0, $1 - 1) AS id",
];

/// A database of one run's own, dropped with this value.
pub struct Books {
    database: TestDatabase,
    /// Shares nothing with the consumers.
    auditor: PgConnection,
}

impl Books {
    pub async fn open() -> Result<Self> {
        Self::of(ACCOUNTS).await
    }

    /// One with so many accounts.
    pub async fn of(accounts: i64) -> Result<Self> {
        let database = TestDatabase::new().await;
        let mut auditor = PgConnection::connect_with(&database.options())
            .await
            .context("no connection to the run's own database")?;
        let [tables @ .., insert] = SCHEMA;
        for table in tables {
            sqlx::query(table).execute(&mut auditor).await?;
        }
        sqlx::query(insert).bind(accounts).execute(&mut auditor).await?;
        handstamp::migrate(database.pool()).await?;
        Ok(Self { database, auditor })
    }

    pub fn url(&self) -> String {
        self.database.url()
    }

    /// How many effects there are.
    pub async fn effects(&mut self) -> Result<u64> {
        self.number("SELECT count(*) FROM effects").await
    }

    /// How many transactions the effects were written in.
    pub async fn transactions(&mut self) -> Result<u64> {
        self.number("SELECT count(DISTINCT xmin::text) FROM effects").await
    }

    /// How many messages have stalled.
    pub async fn stalls(&mut self) -> Result<u64> {
        self.number("SELECT count(*) FROM stalls").await
    }

    /// Holds the effects against the ledger of what Kafka has acknowledged.
    pub async fn audit(&mut self, ledger: &[String]) -> Result<Counts> {
        let effects: Vec<String> =
            sqlx::query_scalar("SELECT event FROM effects").fetch_all(&mut self.auditor).await?;
        Ok(Counts::of(ledger, &effects))
    }

    /// What is wrong after so many different deposits were applied once each, if anything is.
    pub async fn balance(&mut self, deposits: u64, remembered: bool) -> Result<Option<String>> {
        let sums: [i64; 4] = [
            sqlx::query_scalar("SELECT count(*) FROM effects").fetch_one(&mut self.auditor).await?,
            sqlx::query_scalar("SELECT count(*) FROM (SELECT DISTINCT event FROM effects) AS event")
                .fetch_one(&mut self.auditor)
                .await?,
            sqlx::query_scalar("SELECT sum(balance)::int8 FROM accounts")
                .fetch_one(&mut self.auditor)
                .await?,
            sqlx::query_scalar(
                "SELECT (SELECT count(*) FROM handstamp.inbox) + (SELECT count(*) FROM processed_messages)",
            )
            .fetch_one(&mut self.auditor)
            .await?,
        ];
        let deposits = i64::try_from(deposits)?;
        let right = [deposits, deposits, deposits * AMOUNT, if remembered { deposits } else { 0 }];
        let [effects, events, balance, rows] = sums;
        Ok((sums != right).then(|| {
            format!(
                "of {deposits} deposits there are {effects} effects of {events} events, {balance} in the accounts and \
                 {rows} rows in the inbox"
            )
        }))
    }

    /// Has the server write what is dirty, so that the next run does not.
    pub async fn checkpoint(&mut self) -> Result<()> {
        sqlx::query("CHECKPOINT").execute(&mut self.auditor).await?;
        Ok(())
    }

    /// Refuses a server that answers before the disk has.
    pub async fn require_durability(&mut self) -> Result<()> {
        for setting in ["fsync", "synchronous_commit"] {
            let value: String = sqlx::query_scalar("SELECT current_setting($1)")
                .bind(setting)
                .fetch_one(&mut self.auditor)
                .await?;
            anyhow::ensure!(value == "on", "{setting} is {value}: without it every figure is worth nothing");
        }
        Ok(())
    }

    async fn number(&mut self, question: &'static str) -> Result<u64> {
        let answer: i64 = sqlx::query_scalar(question).fetch_one(&mut self.auditor).await?;
        Ok(answer.unsigned_abs())
    }
}

/// Events beside their effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct Counts {
    pub events: u64,
    /// Effects beyond the first of each event.
    pub duplicates: u64,
    /// Events without an effect.
    pub lost: u64,
    /// Effects of no event.
    pub unknown: u64,
}

impl Counts {
    fn of(ledger: &[String], effects: &[String]) -> Self {
        let mut applied: HashMap<&str, u64> = ledger.iter().map(|event| (&**event, 0)).collect();
        let mut unknown = 0;
        for effect in effects {
            match applied.get_mut(&**effect) {
                Some(times) => *times += 1,
                None => unknown += 1,
            }
        }
        Self {
            events: ledger.len() as u64,
            duplicates: applied.values().map(|times| times.saturating_sub(1)).sum(),
            lost: applied.values().filter(|times| **times == 0).count() as u64,
            unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count<const N: usize>(effects: [&str; N]) -> Counts {
        Counts::of(&["a", "b", "c"].map(str::to_owned), &effects.map(str::to_owned))
    }

    #[test]
    fn events_applied_once_each_are_neither_lost_nor_doubled() {
        assert_eq!(count(["c", "a", "b"]), Counts { events: 3, duplicates: 0, lost: 0, unknown: 0 });
    }

    #[test]
    fn every_effect_beyond_the_first_is_a_duplicate_though_another_event_is_lost() {
        assert_eq!(count(["a", "a", "a", "b"]), Counts { events: 3, duplicates: 2, lost: 1, unknown: 0 });
    }

    #[test]
    fn an_effect_of_no_event_hides_no_loss() {
        assert_eq!(count(["a", "b", "d"]), Counts { events: 3, duplicates: 0, lost: 1, unknown: 1 });
    }
}
