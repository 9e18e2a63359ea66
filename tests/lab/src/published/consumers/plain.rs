//! What the consumers that are written by hand share: everything but the order of their steps.

use anyhow::{Context, Result};
use rdkafka::ClientConfig;
use rdkafka::consumer::{Consumer, StreamConsumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Headers, Message};
use shipped::Deposit;

use super::Task;

/// When offsets are committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offsets {
    /// By the client, of whatever it has handed out.
    Automatic,
    /// By the client, of what it is told is done.
    Stored,
    /// By the consumer, which waits for each commit.
    Committed,
}

/// A member of the group.
pub fn join(task: &Task, offsets: Offsets) -> Result<StreamConsumer> {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", &task.source.brokers)
        .set("group.id", &task.source.group)
        .set("enable.auto.commit", (offsets != Offsets::Committed).to_string())
        .set("enable.auto.offset.store", (offsets == Offsets::Automatic).to_string())
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
            Err(error) => report(&error),
        }
    }
}

/// Tells of an error of the client.
pub fn report(error: &KafkaError) {
    match error {
        KafkaError::MessageConsumption(RDKafkaErrorCode::PollExceeded) => println!("evicted"),
        error => eprintln!("{error}"),
    }
}

/// What a message says: the event's id and the deposit.
pub fn read<'a>(message: &'a BorrowedMessage<'_>) -> Result<(&'a str, Deposit)> {
    let deposit = serde_json::from_slice(message.payload().unwrap_or_default())?;
    let headers = message.headers().context("a record without headers")?;
    let event = headers.iter().find(|header| header.key == "event_id").and_then(|header| header.value);
    Ok((str::from_utf8(event.context("a record without event_id")?)?, deposit))
}

/// Applies a message in a transaction of its own.
pub async fn apply(task: &Task, message: &BorrowedMessage<'_>) -> Result<()> {
    let (event, deposit) = read(message)?;
    let mut transaction = task.pool.begin().await?;
    task.work.credit(&mut transaction, event, &deposit).await?;
    transaction.commit().await?;
    task.tally.finish(message.partition(), message.offset());
    Ok(())
}
