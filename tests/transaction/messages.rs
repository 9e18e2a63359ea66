use std::future::pending;
use std::sync::Arc;

use handstamp::flow::Ahead;
use handstamp::internal::progress::{self, Progress, TrackedPartition, Tracking};
use handstamp::internal::{Connections, Consumer, Job, JobFailure, Task, consumers};
use handstamp::{Disposition, Failure, FailureKind, Message, Position, Store};
use sqlx::Pool;
use uuid::Uuid;

pub const TOPIC: &str = "deposits";

pub fn message(event: &str) -> Message {
    Message::builder().header("event_id", event).payload(br#"{"amount": 5}"#).build()
}

pub fn message_at(event: &str, offset: i64) -> Message {
    Message::builder()
        .header("event_id", event)
        .payload(br#"{"amount": 5}"#)
        .position(Position::new(TOPIC, 0, offset))
        .build()
}

/// A partition as a worker would have it assigned.
pub struct Assigned<DB: Store> {
    pub pool: Pool<DB>,
    pub id: consumers::ConsumerId,
    pub partition: Arc<TrackedPartition>,
    pub acknowledged: i64,
}

impl<DB: Store> Assigned<DB> {
    /// Registers the consumer and makes its progress row at offset 0.
    pub async fn new(pool: &Pool<DB>, consumer: &dyn Consumer<DB>) -> Self {
        let registration = consumer.registration(Some(consumer.name()), &[TOPIC]);
        let id = consumers::register(pool, &registration).await.expect("it registers");
        let partition = TrackedPartition {
            topic: TOPIC.into(),
            partition: 0,
            cluster: "cluster".into(),
            topic_id: Uuid::from_u128(1),
            incarnation: 1,
        };
        let row = progress::create(pool, id, &partition, 0).await.expect("the row is made");
        Self { pool: pool.clone(), id, partition: Arc::new(row.partition), acknowledged: row.next }
    }

    pub fn tracking(&self, watermark: i64) -> Tracking {
        let (partition, acknowledged) = (self.partition.clone(), self.acknowledged);
        Tracking { partition, watermark, acknowledged, ahead: Ahead::default() }
    }

    /// Runs a message whose offset is the next in order.
    pub async fn run(&self, consumer: &dyn Consumer<DB>, message: &Message) -> Result<Disposition, Failure> {
        self.run_task(consumer, message, Task::Apply).await
    }

    pub async fn run_task(
        &self,
        consumer: &dyn Consumer<DB>,
        message: &Message,
        task: Task,
    ) -> Result<Disposition, Failure> {
        let watermark = message.position().expect("it has a position").offset + 1;
        let job = Job { attempt: 1, tracking: Some(self.tracking(watermark)), task };
        run_alone(consumer, &Connections::of(&self.pool), message, &job, pending()).await
    }

    /// Runs messages in one transaction that moves the progress to `watermark`.
    pub async fn run_batch(
        &self,
        consumer: &dyn Consumer<DB>,
        messages: impl IntoIterator<Item = Message>,
        watermark: i64,
    ) -> Result<Vec<Disposition>, JobFailure> {
        let job = Job { attempt: 1, tracking: Some(self.tracking(watermark)), task: Task::Apply };
        let messages: Vec<_> = messages.into_iter().collect();
        let messages: Vec<_> = messages.iter().collect();
        consumer
            .run(&Connections::of(&self.pool), &messages, &job, Box::pin(pending()))
            .await
            .map(|done| done.dispositions)
    }

    pub async fn progress(&self) -> Progress {
        let rows = progress::read(&self.pool, self.id, TOPIC).await.expect("it is read");
        rows.into_iter().next().expect("there is a row")
    }
}

/// Runs a message as a job of its own.
pub async fn run_alone<DB: Store>(
    consumer: &dyn Consumer<DB>,
    connections: &Connections<DB>,
    message: &Message,
    job: &Job,
    cancel: impl Future<Output = ()> + Send,
) -> Result<Disposition, Failure> {
    let ended = consumer.run(connections, &[message], job, Box::pin(cancel)).await;
    ended.map(|done| done.dispositions[0]).map_err(|failed| failed.failure)
}

pub fn kind<T: std::fmt::Debug>(result: Result<T, Failure>) -> FailureKind {
    result.expect_err("it fails").kind()
}
