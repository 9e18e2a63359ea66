//! One message on a real PostgreSQL, whose handler rolls back by itself: its progress must stay where it was.

use std::future::pending;
use std::sync::Arc;

use anyhow::{Result, ensure};
use handstamp::flow::Ahead;
use handstamp::internal::progress::{self, TrackedPartition, Tracking};
use handstamp::internal::{Connections, Consumer, Job, Registered, Task, consumers};
use handstamp::{FailureKind, Message, Position, idempotent};
use handstamp_tests::TestDatabase;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

const TOPIC: &str = "deposits";

#[idempotent(consumer = "rolls-back", key = header("event_id"))]
async fn rolls_back(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::raw_sql("ROLLBACK").execute(conn).await?;
    Ok(())
}

/// Whether the progress moves past a message that was not applied.
pub fn moves_past_what_was_rolled_back() -> Result<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let database = TestDatabase::new().await;
        run_once(database.pool()).await
    })
}

async fn run_once(pool: &PgPool) -> Result<bool> {
    handstamp::migrate(pool).await?;
    let consumer = Registered::<rolls_back>::new(&());
    let id = consumers::register(pool, &consumer.registration(None, &[TOPIC])).await?;
    let partition = TrackedPartition {
        topic: TOPIC.into(),
        partition: 0,
        cluster: "cluster".into(),
        topic_id: Uuid::from_u128(1),
        incarnation: 1,
    };
    let row = progress::create(pool, id, &partition, 0).await?;
    let (partition, ahead) = (Arc::new(row.partition), Ahead::default());
    let tracking = Tracking { partition, watermark: 1, acknowledged: 0, ahead };
    let job = Job { attempt: 1, tracking: Some(tracking), task: Task::Apply };
    let message = Message::builder().header("event_id", "evt-1").position(Position::new(TOPIC, 0, 0)).build();
    let ended = consumer.run(&Connections::of(pool), &[&message], &job, Box::pin(pending())).await;
    ensure!(
        ended.is_err_and(|failed| failed.failure.kind() == FailureKind::TransactionEnded),
        "a handler that rolled back was not caught"
    );
    let rows = progress::read(pool, id, TOPIC).await?;
    Ok(rows.iter().any(|row| row.next > 0))
}
