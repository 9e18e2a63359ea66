use std::time::Duration;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::super::books::{Books, Counts};
use super::super::consumers::Consumer;
use super::super::feed::Feed;
use super::super::member::Launch;

/// What a run gave.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Trial {
    pub run: u64,
    /// From the first message that was handed over to the last that is in the database.
    pub seconds: f64,
    pub messages_per_second: f64,
    #[serde(flatten)]
    pub counts: Counts,
}

/// How long a consumer may take: 20 messages a second.
const SLOWEST: Duration = Duration::from_millis(50);

/// Has one consumer, under a group and with a database of its own, read the whole topic.
pub async fn run(consumer: Consumer, lanes: u32, feed: &Feed, run: u64) -> Result<Trial> {
    let mut books = Books::open().await?;
    let messages = feed.ledger().len();
    let launch = Launch {
        consumer,
        topic: feed.topic().to_owned(),
        group: handstamp_tests::unique("group"),
        database: books.url(),
        options: vec![format!("--lanes={lanes}"), format!("--until={messages}")],
    };
    let member = launch.start()?;
    let patience = Duration::from_mins(1) + SLOWEST * u32::try_from(messages)?;
    let seconds = member.finished(patience).await?.as_secs_f64();
    member.stop().await;
    let counts = books.audit(feed.ledger()).await?;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let messages_per_second = messages as f64 / seconds;
    Ok(Trial { run, seconds, messages_per_second, counts })
}
