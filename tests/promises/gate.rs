use std::time::Duration;

use anyhow::ensure;
use handstamp_tests::{Record, eventually};
use sqlx::{Connection, PgConnection};

use crate::scene::Scene;

const GATE: i64 = 7;

/// A lock in the database that holds handlers inside their transactions, in whatever process they run.
pub struct Gate(PgConnection);

impl Gate {
    /// Closes it. There is one in each database.
    pub async fn close(scene: &Scene) -> Self {
        let mut connection = scene.connect().await;
        sqlx::query("SELECT pg_advisory_lock($1)").bind(GATE).execute(&mut connection).await.expect("a lock");
        Self(connection)
    }

    /// Waits until `count` handlers stand before it.
    pub async fn wait_for_handlers(&mut self, count: i64) {
        eventually(Duration::from_secs(30), async || {
            let waiting: i64 = sqlx::query_scalar(
                "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database
                 WHERE locktype = 'advisory' AND NOT granted AND datname = current_database()",
            )
            .fetch_one(&mut self.0)
            .await?;
            ensure!(waiting == count, "{waiting} handlers wait, not {count}");
            Ok(())
        })
        .await;
    }

    /// Lets everyone through.
    pub async fn open(self) {
        self.0.close().await.expect("the server answers");
    }
}

/// A message whose handler waits at the gate.
pub fn gated(event: &str) -> Record {
    Record::new(format!(r#"{{"gate":{GATE}}}"#)).header("event_id", event)
}
