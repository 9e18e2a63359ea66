//! One run of one variant.

use std::time::Duration;

use anyhow::{Result, ensure};
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::super::books::{Books, Counts};
use super::super::consumers::Consumer;
use super::super::end::{End, QUIET};
use super::super::feed::Feed;
use super::super::member::{Launch, Member};

/// What a run is asked for.
pub struct Plan {
    pub consumer: Consumer,
    pub messages: u64,
    pub stall_every: u64,
}

/// What it gave.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Trial {
    pub run: u64,
    /// Messages that stalled.
    pub stalls: u64,
    /// How often a client was told that it had polled too late.
    pub evictions: u64,
    #[serde(flatten)]
    pub counts: Counts,
    pub seconds: f64,
}

const CONSUMERS: usize = 3;
/// Deposits come while the consumers work, so that there is always something to poll for.
const SLICE: u64 = 5;
const SLICE_EVERY: Duration = Duration::from_millis(100);
/// How long the consumers may take once all is produced.
const PATIENCE: Duration = Duration::from_mins(8);

impl Plan {
    pub async fn run(&self, run: u64, progress: &ProgressBar) -> Result<Trial> {
        let mut feed = Feed::open().await;
        let mut books = Books::open().await?;
        let group = handstamp_tests::unique("group");
        let options = [
            "--property=max.poll.interval.ms=10000".to_owned(),
            // Not above max.poll.interval.ms.
            "--property=session.timeout.ms=6000".to_owned(),
            "--stall-ms=12000".to_owned(),
            format!("--stall-every={}", self.stall_every),
        ];
        let launch = Launch {
            consumer: self.consumer,
            topic: feed.topic().to_owned(),
            group: group.clone(),
            database: books.url(),
            options: options.to_vec(),
        };
        let members = (0..CONSUMERS).map(|_| launch.start()).collect::<Result<Vec<_>>>()?;
        let started = Instant::now();
        let mut ticks = interval(SLICE_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        progress.set_message(format!("run {run}"));
        while (feed.ledger().len() as u64) < self.messages {
            ticks.tick().await;
            feed.produce(SLICE.min(self.messages - feed.ledger().len() as u64)).await?;
            progress.set_position(feed.ledger().len() as u64);
        }
        let mut end = End::of(&group, feed.topic(), self.messages)?;
        ensure!(
            end.reached_within(PATIENCE, &mut books, progress).await?,
            "{}, run {run}: {}; {}",
            self.consumer.name(),
            end.not_reached().await?,
            members.iter().map(Member::said).collect::<Vec<_>>().join("\n")
        );
        let seconds = started.elapsed().saturating_sub(QUIET).as_secs_f64();
        let mut evictions = 0;
        for member in members {
            evictions += member.evictions();
            member.stop().await;
        }
        let counts = books.audit(feed.ledger()).await?;
        let stalls = books.stalls().await?;
        feed.close().await;
        Ok(Trial { run, stalls, evictions, counts, seconds })
    }
}
