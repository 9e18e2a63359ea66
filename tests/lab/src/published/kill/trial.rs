//! One run of one variant.

use std::time::Duration;

use anyhow::{Result, ensure};
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::super::books::{Books, Counts};
use super::super::consumers::Consumer;
use super::super::end::{End, QUIET};
use super::super::feed::Feed;
use super::super::member::Launch;

/// What a run is asked for.
pub struct Plan {
    pub consumer: Consumer,
    pub messages: u64,
    /// How long each process works before it dies.
    pub pauses: Vec<Duration>,
}

/// What it gave.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Trial {
    pub run: u64,
    /// Consumers at work that died of SIGKILL.
    pub kills: u64,
    #[serde(flatten)]
    pub counts: Counts,
    pub seconds: f64,
}

/// How long a consumer that nobody kills any more may take.
const PATIENCE: Duration = Duration::from_mins(8);

impl Plan {
    pub async fn run(&self, run: u64, progress: &ProgressBar) -> Result<Trial> {
        let mut feed = Feed::open().await;
        feed.produce(self.messages).await?;
        let mut books = Books::open().await?;
        let group = handstamp_tests::unique("group");
        let launch = Launch {
            consumer: self.consumer,
            topic: feed.topic().to_owned(),
            group: group.clone(),
            database: books.url(),
            options: ["--pause-ms=10", "--property=session.timeout.ms=6000"].map(str::to_owned).to_vec(),
        };
        let started = Instant::now();
        let mut kills = 0;
        let mut member = launch.start()?;
        let mut end = End::of(&group, feed.topic(), self.messages)?;
        for pause in &self.pauses {
            if end.reached_before_work(&member, &mut books, progress).await?
                || end.reached_within(*pause, &mut books, progress).await?
            {
                break;
            }
            member.kill().await?;
            kills += 1;
            progress.set_message(format!("run {run}: {kills} kills"));
            member = launch.start()?;
        }
        ensure!(
            end.reached_within(PATIENCE, &mut books, progress).await?,
            "{}, run {run}: {}; {}",
            self.consumer.name(),
            end.not_reached().await?,
            member.said()
        );
        let seconds = started.elapsed().saturating_sub(QUIET).as_secs_f64();
        member.stop().await;
        let counts = books.audit(feed.ledger()).await?;
        feed.close().await;
        Ok(Trial { run, kills, counts, seconds })
    }
}
