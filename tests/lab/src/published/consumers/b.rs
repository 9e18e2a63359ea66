use anyhow::Result;
use rdkafka::consumer::{CommitMode, Consumer};
use tokio::task::block_in_place;

use super::Task;
use super::plain::{self, Offsets};

/// The offset after the database, message by message, and no inbox: what dies in between is applied again.
pub async fn run(task: &Task) -> Result<()> {
    let consumer = plain::join(task, Offsets::Committed)?;
    loop {
        let message = plain::next(task, &consumer).await;
        plain::apply(task, &message).await?;
        if let Err(error) = block_in_place(|| consumer.commit_message(&message, CommitMode::Sync)) {
            // The next commit of this partition replaces it.
            eprintln!("offset not committed: {error}");
        }
    }
}
