use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures_util::future::try_join_all;
use handstamp::laboratory::Point;
use handstamp_tests::Signal;
use tokio::time::sleep;

use crate::faults::member::Member;
use crate::faults::row::{Ask, Expects, Fault, Row};
use crate::faults::stage::{Post, Setup, Stage};
use crate::faults::trial::Trial;
use crate::faults::worker::Trigger;
use crate::sim::random::Random;

pub const ROW: Row = Row {
    id: "F3",
    what: "freezes longer than the session",
    asks: &[Ask::new(Fault::Zombies, 20, 200)],
    expects: Expects { duplicates: true, takeovers: true, no_redelivery: false },
    run: |trial| Box::pin(run(trial)),
};

const SESSION: u32 = 1_000;
/// Where a process may stop in the middle of a transaction.
const MIDST: &[Point] = &[
    Point::AfterClaim,
    Point::InHandler,
    Point::BeforeGuard,
    Point::BeforeCommit,
    Point::CommitSent,
    Point::BeforeOffsetCommit,
];

/// Four members, of which two are frozen at times, at any moment or in the midst of a transaction. They are
/// thawed when others have their partitions.
async fn run(trial: Arc<Trial>) -> Result<()> {
    let stage = trial.stage(Setup::default().session(SESSION)).await?;
    let steady: Vec<_> = ["a", "b"].map(|name| stage.enlist(&Post::dynamic(name))).into();
    let posts = ["c", "d"].map(Post::dynamic);
    let frozen = (0..).zip(posts).map(|(purpose, post)| freeze(&trial, &stage, post, trial.random(purpose)));
    let frozen = try_join_all(frozen).await?;
    trial.close(stage, steady.into_iter().chain(frozen).collect()).await
}

async fn freeze(trial: &Trial, stage: &Stage, post: Post, mut random: Random) -> Result<Member> {
    let mut member = None;
    while trial.wants(Fault::Zombies) {
        let midst = random.chance(500);
        let mut zombie = match member.take() {
            Some(member) if !midst => member,
            other => {
                if let Some(member) = other {
                    Member::stop(member).await?;
                }
                let nth = u32::try_from(random.between(1, 30))?;
                let trigger = Trigger::freeze(random.pick(MIDST), nth);
                stage.enlist(&if midst { post.with(trigger) } else { post.clone() })
            }
        };
        if midst {
            zombie.until_frozen().await?;
        } else {
            zombie.until_done(5).await?;
            sleep(Duration::from_millis(random.below(200))).await;
            zombie.signal(Signal::Freeze);
        }
        trial.injected(Fault::Zombies);
        let held = zombie.strike();
        let lost = stage.journal.until_read_elsewhere(zombie.number(), &held).await;
        let before = zombie.said();
        zombie.signal(Signal::Thaw);
        // It finds out, and comes back.
        zombie.until("reading again", |said| said.started > before.started).await?;
        if lost && !held.is_empty() && zombie.said().ended > before.ended {
            trial.observed(Fault::Zombies);
        }
        zombie.until_done(1).await?;
        member = Some(zombie);
    }
    Ok(member.unwrap_or_else(|| stage.enlist(&post)))
}
