use std::time::Duration;

use anyhow::Result;
use handstamp_tests::introduce;
use rdkafka::ClientConfig;
use rdkafka::consumer::{CommitMode, Consumer, StreamConsumer};
use rdkafka::message::Message;
use sqlx::PgPool;
use tokio::task::block_in_place;
use tokio::time::timeout;

use super::deposit::{ATTEMPTS, Deposit, Trouble};
use super::told::{Ending, Told};
use super::{Broken, WorkerArguments};

/// How long nothing may come before the client is told once more where the brokers are.
const SILENCE: Duration = Duration::from_secs(5);

/// Consumes without an inbox: what the oracle must find wrong. Effects and offset are two commits, in one
/// order or the other.
pub async fn consume(arguments: &WorkerArguments, pool: &PgPool, broken: Broken) -> Result<()> {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", &arguments.brokers)
        .set("group.id", &arguments.group)
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "earliest");
    for (name, value) in &arguments.properties {
        config.set(name, value);
    }
    let consumer: StreamConsumer = config.create()?;
    consumer.subscribe(&[&arguments.topic])?;
    loop {
        let received = timeout(SILENCE, consumer.recv()).await;
        let Ok(Ok(message)) = received else {
            introduce(consumer.client(), &arguments.brokers);
            continue;
        };
        let (partition, offset) = (message.partition(), message.offset());
        // A commit may fail: the group has gone on.
        let commit = || block_in_place(|| consumer.commit_message(&message, CommitMode::Sync)).is_ok();
        if broken == Broken::OffsetFirst {
            commit();
        }
        let ending = match message.payload().map(serde_json::from_slice::<Deposit>) {
            None => Ending::Skipped,
            Some(deposit) => apply(pool, &deposit?, partition, offset).await?,
        };
        if broken == Broken::EffectsFirst {
            commit();
        }
        Told::Done { partition, offset, ending }.say();
    }
}

async fn apply(pool: &PgPool, deposit: &Deposit, partition: i32, offset: i64) -> Result<Ending> {
    if matches!(deposit.trouble, Trouble::Rejected | Trouble::Fails(ATTEMPTS..)) {
        return Ok(Ending::Parked);
    }
    let mut transaction = pool.begin().await?;
    deposit.apply(partition, offset, 1, &mut transaction).await?;
    // Long enough for a process to be killed before its second commit.
    tokio::time::sleep(Duration::from_millis(5)).await;
    transaction.commit().await?;
    Ok(Ending::Applied)
}
