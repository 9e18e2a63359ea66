use handstamp::{EventId, Json, Kafka, Notice, State, Worker, WorkerError, idempotent};
use sqlx::{PgConnection, PgPool};

use crate::{Deposit, Work};

#[idempotent(consumer = "wallet-credits", key = header("event_id"))]
async fn credit(
    EventId(event): EventId,
    Json(deposit): Json<Deposit>,
    State(work): State<Work>,
    conn: &mut PgConnection,
) -> sqlx::Result<()> {
    work.credit(conn, &event, &deposit).await
}

/// Where a worker reads, and from whom.
#[derive(Clone, Debug)]
pub struct Source {
    /// `host:port` of the brokers.
    pub brokers: String,
    /// Of librdkafka.
    pub properties: Vec<(String, String)>,
    /// What it reads.
    pub topic: String,
    /// As which group.
    pub group: String,
}

/// What happened to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// It reads a partition.
    Started,
    /// It has dealt with a message.
    Done,
}

/// Consumes until SIGTERM.
///
/// # Errors
/// Those of the worker.
pub async fn run(
    source: Source,
    pool: PgPool,
    work: Work,
    told: impl Fn(Told) + Send + Sync + 'static,
) -> Result<(), WorkerError> {
    let mut kafka = Kafka::new(source.brokers);
    for (name, value) in source.properties {
        kafka = kafka.property(name, value);
    }
    Worker::builder(pool)
        .state(work)
        .kafka(kafka)
        .group(source.group)
        .observe(move |notice| match notice {
            Notice::Started { .. } => told(Told::Started),
            Notice::Done { .. } => told(Told::Done),
            _ => {}
        })
        .consume::<credit>(source.topic)
        .run()
        .await
}
