use anyhow::Result;
use shipped::Told;

use super::Task;

/// handstamp, as it ships.
pub async fn run(task: Task) -> Result<()> {
    tracing_subscriber::fmt().with_ansi(false).with_writer(std::io::stderr).init();
    let Task { source, pool, work, tally } = task;
    let told = move |told| match told {
        Told::Started => tally.begin(),
        Told::Done => tally.finish(),
    };
    shipped::run(source, pool, work, told).await?;
    Ok(())
}
