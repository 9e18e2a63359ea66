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
    /// How long each process lives.
    pub pauses: Vec<Duration>,
}

/// What it gave.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Trial {
    pub run: u64,
    /// Consumers that died of SIGKILL.
    pub kills: u64,
    /// Of those, the ones that had finished a message.
    pub kills_at_work: u64,
    #[serde(flatten)]
    pub counts: Counts,
    pub seconds: f64,
}

/// How long a consumer that nobody kills any more may take.
const PATIENCE: Duration = Duration::from_mins(15);

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
        let (mut kills, mut kills_at_work) = (0, 0);
        let mut member = launch.start()?;
        let mut end = End::of(&group, feed.topic(), self.messages)?;
        for pause in &self.pauses {
            if end.reached_within(*pause, &mut books, progress).await? {
                break;
            }
            kills_at_work += u64::from(member.has_worked());
            member.kill().await?;
            kills += 1;
            progress.set_message(format!("run {run}: {kills} kills"));
            member = launch.start()?;
        }
        ensure!(
            end.reached_within(PATIENCE, &mut books, progress).await?,
            "{} did not get to the end of its topic within {PATIENCE:?}",
            self.consumer.name()
        );
        let seconds = (started.elapsed() - QUIET).as_secs_f64();
        member.stop().await;
        let counts = books.audit(feed.ledger()).await?;
        feed.close().await;
        Ok(Trial { run, kills, kills_at_work, counts, seconds })
    }
}
