use anyhow::Result;

use super::Task;
use super::plain::{self, Offsets};

/// Auto-commit, one message at a time: whatever was handed out counts as done at the next automatic commit, which
/// comes every five seconds.
pub async fn run(task: &Task) -> Result<()> {
    let consumer = plain::join(task, Offsets::Automatic)?;
    loop {
        let message = plain::next(task, &consumer).await;
        plain::apply(task, &message).await?;
    }
}
