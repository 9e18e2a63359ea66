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
    follower: JoinHandle<()>,
}

impl Progress {
    pub fn follow(plan: &Plan, mut tally: watch::Receiver<Tally>) -> Result<Self> {
        let bar = ProgressBar::new(plan.events.into());
        bar.set_style(ProgressStyle::with_template(
            "  {bar:36} {human_pos}/{human_len} applied, {msg}  {elapsed}",
        )?);
        bar.enable_steady_tick(Duration::from_millis(200));
        let (shown, planned) = (bar.clone(), plan.kills);
        let follower = tokio::spawn(async move {
            loop {
                let Tally { applied, skipped, kills, .. } = *tally.borrow_and_update();
                shown.set_position(applied);
                shown.set_message(format!("{skipped} duplicates skipped, {kills}/{planned} kills"));
                if tally.changed().await.is_err() {
                    return;
                }
            }
        });
        Ok(Self { bar, follower })
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.follower.abort();
        self.bar.finish_and_clear();
    }
}
