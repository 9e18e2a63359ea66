use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use handstamp::laboratory::{self, Point};
use handstamp::{EventId, Json, Kafka, Notice, State, Worker, idempotent};
use shipped::{Deposit, Work};
use sqlx::PgConnection;
use tracing_subscriber::EnvFilter;

use super::Task;

static FROZEN_UNTIL: Mutex<Option<Instant>> = Mutex::new(None);

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
    // librdkafka's log tells of every eviction; the worker's own is limited to one in a while.
    let filter = EnvFilter::new("info,handstamp::librdkafka=debug");
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(std::io::stderr).init();
    laboratory::on_reach(|point| {
        if point == Point::AfterPoll {
            thaw();
        }
    });
    let Task { source, pool, work, tally } = task;
    let mut kafka = Kafka::new(source.brokers);
    for (name, value) in source.properties {
        kafka = kafka.property(name, value);
    }
    Worker::builder(pool)
        .state(work)
        .kafka(kafka)
        .group(source.group)
        .observe(move |notice| {
            if let Notice::Done { .. } = notice {
                tally.finish();
            }
        })
        .consume::<credit>(source.topic)
        .run()
        .await?;
    Ok(())
}

/// From the next records on, the poll thread stands still.
pub fn freeze(long: Duration) {
    *FROZEN_UNTIL.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + long);
}

fn thaw() {
    let frozen = FROZEN_UNTIL.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(until) = frozen {
        thread::sleep(until.saturating_duration_since(Instant::now()));
    }
}
