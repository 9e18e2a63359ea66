use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures_util::future::try_join_all;
use tokio::time::sleep;

use crate::faults::member::Member;
use crate::faults::row::{Ask, Expects, Fault, Row};
use crate::faults::stage::{Post, Setup, Stage};
use crate::faults::trial::Trial;

pub const ROW: Row = Row {
    id: "F6",
    what: "graceful restarts under load",
    asks: &[Ask::new(Fault::CleanStops, 100, 300)],
    expects: Expects { duplicates: false, takeovers: false, no_redelivery: true },
    run: |trial| Box::pin(run(trial)),
};

/// What a worker says it drains for at most.
const DEADLINE: Duration = Duration::from_secs(10);

/// Nobody dies here, and a member that had no processor for a moment is not to pass for dead.
const SESSION: u32 = 6_000;

/// Static members, whose partitions wait for them, and others, whose partitions change hands.
async fn run(trial: Arc<Trial>) -> Result<()> {
    let setup = || Setup::default().session(SESSION);
    let (fixed, moving) = tokio::try_join!(trial.stage(setup()), trial.stage(setup()))?;
    let (survivors, others) = tokio::try_join!(
        restart_all(&trial, &fixed, ["0", "1", "2"].map(Post::fixed)),
        restart_all(&trial, &moving, ["0", "1", "2"].map(Post::dynamic)),
    )?;
    tokio::try_join!(trial.close(fixed, survivors), trial.close(moving, others))?;
    Ok(())
}

async fn restart_all<const N: usize>(trial: &Trial, stage: &Stage, posts: [Post; N]) -> Result<Vec<Member>> {
    try_join_all((0..).zip(posts).map(|(purpose, post)| restart(trial, stage, post, purpose))).await
}

async fn restart(trial: &Trial, stage: &Stage, post: Post, purpose: u64) -> Result<Member> {
    let mut random = trial.random(purpose);
    loop {
        let mut member = stage.enlist(&post);
        if !trial.wants(Fault::CleanStops) {
            return Ok(member);
        }
        member.until_done(5).await?;
        sleep(Duration::from_millis(random.below(300))).await;
        trial.injected(Fault::CleanStops);
        let reading = member.is_reading();
        let took = member.stop().await?;
        if took > DEADLINE {
            trial.blame(format!("a stop took {took:?}"));
        }
        if reading {
            trial.observed(Fault::CleanStops);
        }
    }
}
