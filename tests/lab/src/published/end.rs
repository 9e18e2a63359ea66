use std::time::Duration;

use anyhow::Result;
use indicatif::ProgressBar;
use tokio::time::{Instant, sleep};

use super::books::Books;
use super::group::Group;

/// How often it is looked for.
const EVERY: Duration = Duration::from_secs(1);
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
            let effects = books.effects().await?;
            progress.set_position(effects.min(self.messages));
            if effects != self.effects {
                (self.effects, self.still_since) = (effects, Instant::now());
            } else if effects > 0
                && self.still_since.elapsed() >= QUIET
                && self.group.committed().await? >= Some(self.messages)
            {
                return Ok(true);
            }
        }
    }
}
