use anyhow::Result;
use shipped::{Handling, Told};

use super::{Task, evictions};

/// handstamp, as it ships.
pub async fn run(task: Task, handling: Handling) -> Result<()> {
    evictions::log_all()?;
    let Task { source, pool, work, tally, .. } = task;
    let told = move |told| match told {
        Told::Started => tally.begin(),
        Told::Done { partition, offset } => tally.finish(partition, offset),
    };
    shipped::run(handling, source, pool, work, told).await?;
    Ok(())
}
