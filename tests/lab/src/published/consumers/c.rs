use anyhow::Result;
use shipped::Told;

use super::{Task, evictions};

/// handstamp, as it ships.
pub async fn run(task: Task) -> Result<()> {
    evictions::log_all()?;
    let Task { source, pool, work, tally } = task;
    let told = move |told| match told {
        Told::Started => tally.begin(),
        Told::Done => tally.finish(),
    };
    shipped::run(source, pool, work, told).await?;
    Ok(())
}
