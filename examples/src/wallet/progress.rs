//! The bar: on standard error, and only on a terminal.

use std::time::Duration;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::options::Plan;
use crate::report::Tally;

/// Follows what the workers tell.
pub struct Progress {
    bar: ProgressBar,
    kills: u32,
    planned: u32,
    follower: JoinHandle<()>,
}

impl Progress {
    pub fn follow(plan: &Plan, mut tally: watch::Receiver<Tally>) -> Result<Self> {
        let bar = ProgressBar::new(plan.events.into());
        bar.set_style(ProgressStyle::with_template(
            "  {bar:36} {human_pos}/{human_len} applied  {per_sec:.dim}  {msg}",
        )?);
        bar.set_message(format!("0/{} kills", plan.kills));
        bar.enable_steady_tick(Duration::from_millis(200));
        let shown = bar.clone();
        let follower = tokio::spawn(async move {
            while tally.changed().await.is_ok() {
                let applied = tally.borrow_and_update().applied;
                shown.set_position(applied);
            }
        });
        Ok(Self { bar, kills: 0, planned: plan.kills, follower })
    }

    pub fn killed(&mut self) {
        self.kills += 1;
        self.bar.set_message(format!("{}/{} kills", self.kills, self.planned));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.follower.abort();
        self.bar.finish_and_clear();
    }
}
