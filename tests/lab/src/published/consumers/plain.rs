//! What the consumers that are written by hand share: everything but the order of their steps.

use anyhow::{Context, Result};
use rdkafka::ClientConfig;
use rdkafka::consumer::{Consumer, StreamConsumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Headers, Message};
use shipped::Deposit;

use super::Task;

/// A member of the group.
pub fn join(task: &Task, auto_commit: bool) -> Result<StreamConsumer> {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", &task.source.brokers)
        .set("group.id", &task.source.group)
        .set("enable.auto.commit", if auto_commit { "true" } else { "false" })
        .set("auto.offset.reset", "earliest");
    for (name, value) in &task.source.properties {
        config.set(name, value);
    }
    let consumer: StreamConsumer = config.create()?;
    consumer.subscribe(&[&task.source.topic])?;
    Ok(consumer)
}

/// The next message. The client recovers from errors by itself.
pub async fn next<'a>(task: &Task, consumer: &'a StreamConsumer) -> BorrowedMessage<'a> {
    loop {
        match consumer.recv().await {
            Ok(message) => {
                task.tally.begin();
                return message;
            }
            Err(KafkaError::MessageConsumption(RDKafkaErrorCode::PollExceeded)) => println!("evicted"),
            Err(error) => eprintln!("{error}"),
        }
    }
}

/// Applies a message in a transaction of its own.
pub async fn apply(task: &Task, message: &BorrowedMessage<'_>) -> Result<()> {
    let deposit: Deposit = serde_json::from_slice(message.payload().unwrap_or_default())?;
    let headers = message.headers().context("a record without headers")?;
    let event = headers.iter().find(|header| header.key == "event_id").and_then(|header| header.value);
    let event = str::from_utf8(event.context("a record without event_id")?)?;
    let mut transaction = task.pool.begin().await?;
    task.work.credit(&mut transaction, event, &deposit).await?;
    transaction.commit().await?;
    task.tally.finish();
    Ok(())
}
