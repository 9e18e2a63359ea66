use anyhow::{Context, Result};
use futures_util::future::try_join_all;
use futures_util::{FutureExt, TryFutureExt};
use shipped::{CREDIT, RECORD};
use tokio_postgres::{Client, NoTls, Statement};

use super::claims::{CLAIM_MANY, CONSUMER, among};
use super::inlet::Credit;

/// A connection that is sent all statements of a transaction before the first is answered, as by Spring's JDBC
/// batch. sqlx waits for each.
pub struct Pipeline {
    client: Client,
    claim: Statement,
    credit: Statement,
    record: Statement,
}

impl Pipeline {
    pub async fn connect(url: &str) -> Result<Self> {
        // What follows are options of sqlx.
        let (url, _) = url.split_once('?').unwrap_or((url, ""));
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.context("no connection")?;
        tokio::spawn(connection.map(|ended| {
            if let Err(error) = ended {
                eprintln!("connection lost: {error}");
            }
        }));
        let claim = client.prepare(CLAIM_MANY).await?;
        let credit = client.prepare(CREDIT).await?;
        let record = client.prepare(RECORD).await?;
        Ok(Self { client, claim, credit, record })
    }

    /// Remembers and applies messages, in one transaction.
    pub async fn apply(&mut self, credits: &[Credit]) -> Result<()> {
        let transaction = self.client.transaction().await?;
        let rows = transaction.query(&self.claim, &[&CONSUMER, &Credit::events(credits)]).await?;
        let fresh = among(credits, rows.iter().map(|row| row.get(0)));
        let (credit, record, transaction_) = (&self.credit, &self.record, &transaction);
        // They are sent in the order in which they are polled first.
        let statements = fresh.iter().flat_map(|one| {
            let credited = async move {
                transaction_.execute(credit, &[&one.deposit.amount, &one.deposit.account]).await
            };
            let recorded = async move {
                let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
                    [&one.event, &one.deposit.account, &one.deposit.amount];
                transaction_.execute(record, &values).await
            };
            [credited.boxed(), recorded.boxed()]
        });
        try_join_all(statements).await?;
        transaction.commit().map_err(Into::into).await
    }
}
