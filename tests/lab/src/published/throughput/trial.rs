use std::time::Duration;

use anyhow::{Result, bail, ensure};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use super::super::books::Books;
use super::super::consumers::{Consumer, Loop, Reading};
use super::super::feed::Feed;
use super::super::group::Group;
use super::super::member::Launch;

/// As many as there are partitions.
pub const LANES: &str = "--lanes=6";
/// How long a consumer may take: 20 messages a second.
const SLOWEST: Duration = Duration::from_millis(50);
/// How long offsets may take to be committed after the last message.
const COMMITTED_WITHIN: Duration = Duration::from_secs(15);

/// What a run gave, once its result was found to be right.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Trial {
    pub round: u64,
    pub messages: u64,
    pub transactions: u64,
    #[serde(flatten)]
    pub reading: Reading,
}

impl Trial {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    pub fn messages_per_transaction(&self) -> f64 {
        self.messages as f64 / self.transactions as f64
    }

    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    pub fn messages_per_second(&self) -> f64 {
        self.messages as f64 / self.reading.seconds()
    }
}

/// Has one consumer, under a group and with a database of its own, read a whole topic.
pub async fn run(consumer: Consumer, feed: &Feed, round: u64) -> Result<Trial> {
    let mut books = Books::open().await?;
    books.require_durability().await?;
    books.checkpoint().await?;
    let (messages, group) = (feed.produced(), handstamp_tests::unique("group"));
    let launch = Launch {
        consumer,
        topic: feed.topic().to_owned(),
        group: group.clone(),
        database: books.url(),
        options: options(consumer, messages),
    };
    let member = launch.start()?;
    let reading = member.finished(Duration::from_mins(1) + SLOWEST * u32::try_from(messages)?).await?;
    let by_hand = consumer.by_hand();
    if by_hand.is_none_or(Loop::reads_kafka) {
        all_committed(&group, feed).await?;
    }
    member.stop().await;
    let remembered = consumer.handling().is_some() || by_hand.is_some_and(Loop::remembers);
    if let Some(wrong) = books.balance(messages, remembered).await? {
        bail!(wrong);
    }
    Ok(Trial { round, messages, transactions: books.transactions().await?, reading })
}

/// What a consumer is told that reads so many messages.
pub fn options(consumer: Consumer, messages: u64) -> Vec<String> {
    let mut options = vec![LANES.to_owned(), format!("--until={messages}")];
    if consumer.handling().is_none() {
        // Every five seconds by default: each run would wait as long for its end.
        options.push("--property=auto.commit.interval.ms=1000".to_owned());
    }
    options
}

async fn all_committed(group: &str, feed: &Feed) -> Result<()> {
    let (group, deadline) = (Group::of(group, feed.topic())?, Instant::now() + COMMITTED_WITHIN);
    loop {
        let committed = group.committed().await?;
        if committed == Some(feed.produced()) {
            return Ok(());
        }
        ensure!(
            Instant::now() < deadline,
            "committed offsets cover {committed:?} of {} messages {COMMITTED_WITHIN:?} after the last was applied",
            feed.produced()
        );
        sleep(Duration::from_millis(50)).await;
    }
}
