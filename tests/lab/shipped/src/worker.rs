use handstamp::{Kafka, Notice, Worker, WorkerError};
use sqlx::PgPool;

use crate::Work;
use crate::handlers::{credit, credit_all, credit_alone, record};

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

/// How messages are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handling {
    /// One after the other, many to a transaction where there is a backlog: without options.
    Adaptive,
    /// Each in a transaction of its own.
    Batch1,
    /// All of a transaction at once.
    Bulk,
    /// Without waiting: what is written is recorded.
    WriteOnly,
}

/// A message that a worker has dealt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// Where it stood.
    pub partition: i32,
    /// Where it stood.
    pub offset: i64,
}

/// Consumes until SIGTERM.
///
/// # Errors
/// Those of the worker.
pub async fn run(
    handling: Handling,
    source: Source,
    pool: PgPool,
    work: Work,
    told: impl Fn(Told) + Send + Sync + 'static,
) -> Result<(), WorkerError> {
    let mut kafka = Kafka::new(source.brokers);
    for (name, value) in source.properties {
        kafka = kafka.property(name, value);
    }
    let worker = Worker::builder(pool).state(work).kafka(kafka).group(source.group).observe(move |notice| {
        if let Notice::Done { position, .. } = notice {
            told(Told { partition: position.partition, offset: position.offset });
        }
    });
    let worker = match handling {
        Handling::Adaptive => worker.consume::<credit>(source.topic),
        Handling::Batch1 => worker.consume::<credit_alone>(source.topic),
        Handling::Bulk => worker.consume::<credit_all>(source.topic),
        Handling::WriteOnly => worker.consume::<record>(source.topic),
    };
    worker.run().await
}
