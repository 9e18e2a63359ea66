use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures_util::future::try_join_all;
use handstamp::laboratory::Point;

use crate::faults::member::Member;
use crate::faults::row::{Ask, Expects, Fault, Row};
use crate::faults::stage::{Post, Setup, Stage};
use crate::faults::trial::Trial;
use crate::faults::worker::Trigger;

pub const ROW: Row = Row {
    id: "F4",
    what: "evictions by max.poll.interval.ms",
    asks: &[Ask::new(Fault::Evictions, 10, 100)],
    expects: Expects { duplicates: false, takeovers: true, no_redelivery: false },
    run: |trial| Box::pin(run(trial)),
};

const MAX_POLL: Duration = Duration::from_secs(2);
const STALL: Duration = Duration::from_millis(4_500);

/// Members whose poll thread sleeps while their handlers, their heartbeats and all else go on.
async fn run(trial: Arc<Trial>) -> Result<()> {
    let setup =
        Setup::default().session(1_500).property("max.poll.interval.ms", MAX_POLL.as_millis().to_string());
    let stage = trial.stage(setup).await?;
    let steady = stage.enlist(&Post::dynamic("steady"));
    let posts = ["a", "b", "c"].map(Post::dynamic);
    let evicted = try_join_all((0..).zip(posts).map(|(purpose, post)| stall(&trial, &stage, post, purpose)));
    let members = evicted.await?.into_iter().chain([steady]).collect();
    trial.close(stage, members).await
}

async fn stall(trial: &Trial, stage: &Stage, post: Post, purpose: u64) -> Result<Member> {
    let mut random = trial.random(purpose);
    while trial.wants(Fault::Evictions) {
        let nth = u32::try_from(random.between(2, 20))?;
        let mut member = stage.enlist(&post.with(Trigger::stall(Point::AfterPoll, nth, STALL)));
        member.until("stalled", |said| said.reached.is_some()).await?;
        trial.injected(Fault::Evictions);
        let held = member.strike();
        let before = member.said();
        let lost = stage.journal.until_read_elsewhere(member.number(), &held).await;
        member.until("reading again", |said| said.started > before.started).await?;
        if lost && !held.is_empty() && member.said().ended > before.ended {
            trial.observed(Fault::Evictions);
        }
        member.until_done(1).await?;
        member.stop().await?;
    }
    Ok(stage.enlist(&post))
}
