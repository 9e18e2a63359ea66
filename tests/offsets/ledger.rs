//! Handlers that write down each call in a table without a unique key, so that a second one shows.

use std::sync::Arc;
use std::time::Duration;

use handstamp::{EventId, Position, State, idempotent};
use sqlx::PgConnection;
use tokio::sync::Semaphore;
use tokio::time::sleep;

/// Holds handlers back until the test lets them through.
#[derive(Clone, Debug)]
pub struct Gate {
    permits: Arc<Semaphore>,
    pause: Duration,
}

impl Gate {
    pub fn open() -> Self {
        let gate = Self::shut();
        gate.open_up();
        gate
    }

    pub fn shut() -> Self {
        Self { permits: Arc::new(Semaphore::new(0)), pause: Duration::ZERO }
    }

    /// Open, but each call takes a while.
    pub fn slow() -> Self {
        Self { pause: Duration::from_millis(15), ..Self::open() }
    }

    /// Lets `calls` through, now or later.
    pub fn admit(&self, calls: usize) {
        self.permits.add_permits(calls);
    }

    /// Lets everything through from now on.
    pub fn open_up(&self) {
        self.permits.close();
    }

    async fn pass(&self) {
        // A closed semaphore is an open gate.
        if let Ok(permit) = self.permits.acquire().await {
            permit.forget();
        }
        if !self.pause.is_zero() {
            sleep(self.pause).await;
        }
    }
}

#[idempotent(consumer = "ledger", key = header("event_id"), timeout = "5 minutes")]
pub async fn ledger(
    EventId(id): EventId,
    position: Position,
    State(gate): State<Gate>,
    conn: &mut PgConnection,
) -> sqlx::Result<()> {
    gate.pass().await;
    write("ledger", &id, &position, conn).await
}

#[idempotent(consumer = "audit", key = header("event_id"))]
pub async fn audit(EventId(id): EventId, position: Position, conn: &mut PgConnection) -> sqlx::Result<()> {
    write("audit", &id, &position, conn).await
}

#[idempotent(consumer = "latecomer", key = header("event_id"), start_at = latest)]
pub async fn latecomer(
    EventId(id): EventId,
    position: Position,
    conn: &mut PgConnection,
) -> sqlx::Result<()> {
    write("latecomer", &id, &position, conn).await
}

#[idempotent(consumer = "forgiving", key = header("event_id"), on_out_of_range = earliest)]
pub async fn forgiving(
    EventId(id): EventId,
    position: Position,
    conn: &mut PgConnection,
) -> sqlx::Result<()> {
    write("forgiving", &id, &position, conn).await
}

pub async fn write(
    consumer: &str,
    id: &str,
    position: &Position,
    conn: &mut PgConnection,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO effects (consumer, event_id, topic, partition, \"offset\") VALUES ($1, $2, $3, $4, $5)",
    )
    .bind(consumer)
    .bind(id)
    .bind(&*position.topic)
    .bind(position.partition)
    .bind(position.offset)
    .execute(conn)
    .await?;
    Ok(())
}
