use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use handstamp::laboratory::{self, Point};
use handstamp::{EventId, Json, Kafka, Notice, State, Worker, idempotent};
use shipped::{Deposit, Work};
use sqlx::PgConnection;

use super::{Task, evictions};

static FROZEN_FOR: Mutex<Option<Duration>> = Mutex::new(None);

#[idempotent(consumer = "wallet-credits", key = header("event_id"))]
async fn credit(
    EventId(event): EventId,
    Json(deposit): Json<Deposit>,
    State(work): State<Work>,
    conn: &mut PgConnection,
) -> sqlx::Result<()> {
    work.credit(conn, &event, &deposit).await
}

/// handstamp with a thread that polls no more while a handler stalls. As it ships that thread waits for no
/// handler, so that only a process that gets no time at all is evicted.
pub async fn run(task: Task) -> Result<()> {
    evictions::log_all()?;
    laboratory::on_reach(|point| {
        if point == Point::AfterPoll {
            stand_still();
        }
    });
    let Task { source, pool, work, tally, .. } = task;
    let mut kafka = Kafka::new(source.brokers);
    for (name, value) in source.properties {
        kafka = kafka.property(name, value);
    }
    Worker::builder(pool)
        .state(work)
        .kafka(kafka)
        .group(source.group)
        .observe(move |notice| {
            if let Notice::Done { position, .. } = notice {
                tally.finish(position.partition, position.offset);
            }
        })
        .consume::<credit>(source.topic)
        .run()
        .await?;
    Ok(())
}

/// The poll thread stands still as soon as it gets more records.
pub fn freeze(long: Duration) {
    *FROZEN_FOR.lock().unwrap_or_else(PoisonError::into_inner) = Some(long);
}

fn stand_still() {
    let long = FROZEN_FOR.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(long) = long {
        thread::sleep(long);
    }
}
