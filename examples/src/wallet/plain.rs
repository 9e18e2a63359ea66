//! What one writes by hand: the effects in a transaction of their own, then the offset. No inbox.

use anyhow::{Context, Result};
use handstamp::{EventId, Json, State};
use rdkafka::ClientConfig;
use rdkafka::consumer::{CommitMode, Consumer, StreamConsumer};
use rdkafka::message::{BorrowedMessage, Headers, Message};
use tokio::task::block_in_place;

use crate::database::Pool;
use crate::handlers::{Deposit, Work, postgres, sqlite};
use crate::options::WorkerOptions;
use crate::report::{Report, tell};

/// Consumes until the process is killed.
pub async fn run(options: &WorkerOptions, brokers: &str, pool: &Pool, work: Work) -> Result<()> {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", brokers)
        .set("group.id", &options.group)
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "earliest");
    for (name, value) in &options.properties {
        config.set(name, value);
    }
    let consumer: StreamConsumer = config.create()?;
    consumer.subscribe(&[&options.topic])?;
    loop {
        let message = match consumer.recv().await {
            Ok(message) => message,
            Err(error) => {
                tracing::warn!("{error}");
                continue;
            }
        };
        let (deposit, event) = read(&message)?;
        apply(pool, deposit, event, work).await?;
        tell(Report::Applied);
        if let Err(error) = block_in_place(|| consumer.commit_message(&message, CommitMode::Sync)) {
            tracing::warn!("offset not committed: {error}");
        }
    }
}

async fn apply(pool: &Pool, deposit: Deposit, event: String, work: Work) -> Result<()> {
    match pool {
        Pool::Postgres(pool) => {
            let mut transaction = pool.begin().await?;
            postgres::credit(Json(deposit), EventId(event), State(work), &mut transaction).await?;
            transaction.commit().await?;
        }
        Pool::Sqlite(pool) => {
            let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
            sqlite::credit(Json(deposit), EventId(event), State(work), &mut transaction).await?;
            transaction.commit().await?;
        }
    }
    Ok(())
}

fn read(message: &BorrowedMessage<'_>) -> Result<(Deposit, String)> {
    let deposit = serde_json::from_slice(message.payload().unwrap_or_default())?;
    let headers = message.headers().context("a record without headers")?;
    let event = headers.iter().find(|header| header.key == "event_id").and_then(|header| header.value);
    Ok((deposit, String::from_utf8(event.context("a record without event_id")?.to_vec())?))
}
