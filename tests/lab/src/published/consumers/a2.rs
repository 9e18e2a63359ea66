use std::time::Duration;

use anyhow::Result;
use tokio::time::{Instant, timeout_at};

use super::Task;
use super::plain::{self, Offsets};

const BATCH: usize = 100;
/// How long it waits for a batch to fill.
const FILL: Duration = Duration::from_secs(1);

/// Auto-commit, up to a hundred messages at a time: all of them count as done while most still wait for their turn.
pub async fn run(task: &Task) -> Result<()> {
    let consumer = plain::join(task, Offsets::Automatic)?;
    loop {
        let full = Instant::now() + FILL;
        let mut batch = Vec::with_capacity(BATCH);
        while batch.len() < BATCH {
            let Ok(message) = timeout_at(full, plain::next(task, &consumer)).await else { break };
            batch.push(message);
        }
        for message in &batch {
            plain::apply(task, message).await?;
        }
    }
}
