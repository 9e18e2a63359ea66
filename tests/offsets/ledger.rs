//! Handlers that write down each call in a table without a unique key, so that a second one shows.

use std::sync::Arc;

use handstamp::{EventId, Position, State, idempotent};
use sqlx::PgConnection;
use tokio::sync::Semaphore;

/// Holds handlers back until the test lets them through.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Semaphore>);

impl Gate {
    pub fn open() -> Self {
        let gate = Self::shut();
        gate.open_up();
        gate
    }

    pub fn shut() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    /// Lets `calls` through, now or later.
    pub fn admit(&self, calls: usize) {
        self.0.add_permits(calls);
    }

    /// Lets everything through from now on.
    pub fn open_up(&self) {
        self.0.close();
    }

    async fn pass(&self) {
        // A closed semaphore is an open gate.
        if let Ok(permit) = self.0.acquire().await {
            permit.forget();
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

async fn write(consumer: &str, id: &str, position: &Position, conn: &mut PgConnection) -> sqlx::Result<()> {
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
