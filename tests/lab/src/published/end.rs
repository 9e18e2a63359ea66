use std::time::Duration;

use anyhow::{Result, ensure};
use indicatif::ProgressBar;
use tokio::time::{Instant, sleep};

use super::books::Books;
use super::group::Group;
use super::member::Member;

/// How often it is looked for.
const EVERY: Duration = Duration::from_secs(1);
/// How often a process is asked whether it has gone to work.
const WORK_SEEN_EVERY: Duration = Duration::from_millis(50);
/// How long a process may take to go to work: the sessions of dead ones end in between.
const PATIENCE: Duration = Duration::from_mins(3);
/// How long nothing may be applied before a group that has committed everything counts as done: longer than any
/// message takes.
pub const QUIET: Duration = Duration::from_secs(13);

/// Recognises that nothing more will come: every offset is committed, and no effect was added for a while.
pub struct End {
    group: Group,
    messages: u64,
    effects: u64,
    still_since: Instant,
}

impl End {
    pub fn of(group: &str, topic: &str, messages: u64) -> Result<Self> {
        let group = Group::of(group, topic)?;
        Ok(Self { group, messages, effects: 0, still_since: Instant::now() })
    }

    /// Whether it is reached within this time, all of which passes if it is not.
    pub async fn reached_within(
        &mut self,
        limit: Duration,
        books: &mut Books,
        progress: &ProgressBar,
    ) -> Result<bool> {
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            sleep(left.min(EVERY)).await;
            if self.reached(books, progress).await? {
                return Ok(true);
            }
        }
    }

    /// Whether it is reached before the member has finished its first message.
    pub async fn reached_before_work(
        &mut self,
        member: &Member,
        books: &mut Books,
        progress: &ProgressBar,
    ) -> Result<bool> {
        let deadline = Instant::now() + PATIENCE;
        while !member.has_worked() {
            ensure!(Instant::now() < deadline, "no message within {PATIENCE:?}; {}", member.said());
            sleep(WORK_SEEN_EVERY).await;
            if self.reached(books, progress).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What there is instead.
    pub async fn not_reached(&self) -> Result<String> {
        let Self { effects, messages, .. } = self;
        let still = self.still_since.elapsed().as_secs();
        let committed = match self.group.committed().await? {
            Some(committed) => format!("committed up to {committed}"),
            None => "Kafka does not tell what is committed".to_owned(),
        };
        Ok(format!("{effects} effects of {messages} messages, the last {still} s ago; {committed}"))
    }

    async fn reached(&mut self, books: &mut Books, progress: &ProgressBar) -> Result<bool> {
        let effects = books.effects().await?;
        progress.set_position(effects.min(self.messages));
        if effects != self.effects {
            (self.effects, self.still_since) = (effects, Instant::now());
        }
        Ok(effects > 0
            && self.still_since.elapsed() >= QUIET
            && self.group.committed().await? >= Some(self.messages))
    }
}
