use std::sync::Arc;

use anyhow::Result;
use shipped::{Handling, OnCall, Told, Work};

use super::{Task, evictions};

/// handstamp, as it ships.
pub async fn run(task: Task, handling: Handling) -> Result<()> {
    evictions::log_all()?;
    let Task { source, pool, work, tally, .. } = task;
    let tally = Arc::new(tally);
    let clock = Arc::clone(&tally);
    // As for the others, the clock starts when the first message is there to be written.
    let work = Work { on_call: OnCall::new(move || clock.begin()), ..work };
    let told = move |Told { partition, offset }| tally.finish(partition, offset);
    shipped::run(handling, source, pool, work, told).await?;
    Ok(())
}
