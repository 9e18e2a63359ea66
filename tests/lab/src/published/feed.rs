//! What the consumers read.

use anyhow::Result;
use handstamp_tests::{Record, TestTopic};
use shipped::Deposit;
use uuid::Uuid;

pub const PARTITIONS: i32 = 6;
/// Each in one partition only.
pub const ACCOUNTS: i64 = 120;

/// A topic of an experiment's own, and the ledger: the events that Kafka has acknowledged.
pub struct Feed {
    topic: TestTopic,
    ledger: Vec<String>,
}

impl Feed {
    pub async fn open() -> Self {
        Self { topic: TestTopic::create(PARTITIONS).await, ledger: Vec::new() }
    }

    /// Produces so many deposits, one after the other over all partitions.
    pub async fn produce(&mut self, deposits: u64) -> Result<()> {
        let next = self.ledger.len() as u64;
        let mut records = Vec::new();
        for number in next..next + deposits {
            let account = i64::try_from(number)? % ACCOUNTS;
            let event = Uuid::new_v4().to_string();
            let payload = serde_json::to_vec(&Deposit { number, account, amount: 5 })?;
            let partition = i32::try_from(account)? % PARTITIONS;
            records.push(
                Record::new(payload)
                    .key(account.to_string())
                    .header("event_id", &*event)
                    .partition(partition),
            );
            self.ledger.push(event);
        }
        self.topic.produce_all(records).await;
        Ok(())
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
