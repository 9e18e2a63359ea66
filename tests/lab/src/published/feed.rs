//! What the consumers read.

use anyhow::Result;
use handstamp_tests::{Record, TestTopic};
use shipped::Deposit;
use uuid::Uuid;

pub const PARTITIONS: i32 = 6;
/// Each in one partition only.
pub const ACCOUNTS: i64 = 120;
/// Of every deposit.
pub const AMOUNT: i64 = 5;

/// A topic of an experiment's own, and the ledger: the events that Kafka has acknowledged.
pub struct Feed {
    topic: TestTopic,
    accounts: i64,
    ledger: Vec<String>,
    produced: u64,
}

/// The deposit of this number, where there are so many accounts.
pub fn deposit(number: u64, accounts: i64) -> Result<Deposit> {
    Ok(Deposit { number, account: i64::try_from(number)? % accounts, amount: AMOUNT })
}

/// Where it is produced to.
pub fn partition(deposit: &Deposit) -> Result<i32> {
    Ok(i32::try_from(deposit.account % i64::from(PARTITIONS))?)
}

impl Feed {
    pub async fn open() -> Self {
        Self::over(ACCOUNTS).await
    }

    /// One with deposits for so many accounts, a multiple of [`PARTITIONS`].
    pub async fn over(accounts: i64) -> Self {
        Self { topic: TestTopic::create(PARTITIONS).await, accounts, ledger: Vec::new(), produced: 0 }
    }

    /// Produces so many deposits, one after the other over all partitions.
    pub async fn produce(&mut self, deposits: u64) -> Result<()> {
        let mut records = Vec::new();
        for number in self.produced..self.produced + deposits {
            let deposit = deposit(number, self.accounts)?;
            let event = Uuid::new_v4().to_string();
            records.push(
                Record::new(serde_json::to_vec(&deposit)?)
                    .key(deposit.account.to_string())
                    .header("event_id", &*event)
                    .partition(partition(&deposit)?),
            );
            self.ledger.push(event);
        }
        self.produced += deposits;
        self.topic.produce_all(records).await;
        Ok(())
    }

    /// Drops the ledger: millions of ids take memory, and the database can count by itself.
    pub fn forget_ledger(&mut self) {
        self.ledger = Vec::new();
    }

    /// How many deposits there are.
    pub fn produced(&self) -> u64 {
        self.produced
    }

    pub fn topic(&self) -> &str {
        self.topic.name()
    }

    pub fn ledger(&self) -> &[String] {
        &self.ledger
    }

    /// Deletes the topic.
    pub async fn close(self) {
        self.topic.delete().await;
    }
}
