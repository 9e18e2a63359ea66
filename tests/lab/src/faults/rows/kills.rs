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
    id: "F1",
    what: "hard kills at random moments",
    asks: &[Ask::new(Fault::Kills, 150, 1_500)],
    expects: Expects { duplicates: true, takeovers: true, no_redelivery: false },
    run: |trial| Box::pin(run(trial)),
};

/// On one stage a dead process comes back as the same member of its group, which costs no time; on the
/// other the group has to notice, and the survivors take over. There, message keys have an order, partitions have none.
async fn run(trial: Arc<Trial>) -> Result<()> {
    let (fixed, moving) = tokio::try_join!(
        trial.stage(Setup::default()),
        trial.stage(Setup::default().session(1_000).keyed())
    )?;
    let posts = |post: fn(String) -> Post, count: usize| -> Vec<Post> {
        (0..count).map(|number| post(number.to_string())).collect()
    };
    let (survivors, others) = tokio::try_join!(
        kill_all(&trial, &fixed, posts(Post::fixed, 4)),
        kill_all(&trial, &moving, posts(Post::dynamic, 3)),
    )?;
    tokio::try_join!(trial.close(fixed, survivors), trial.close(moving, others))?;
    Ok(())
}

async fn kill_all(trial: &Trial, stage: &Stage, posts: Vec<Post>) -> Result<Vec<Member>> {
    try_join_all((0..).zip(posts).map(|(purpose, post)| kill_one(trial, stage, post, purpose))).await
}

/// Kills the process of one post again and again; the one that is left at the end lives.
async fn kill_one(trial: &Trial, stage: &Stage, post: Post, purpose: u64) -> Result<Member> {
    let mut random = trial.random(purpose);
    loop {
        let mut member = stage.enlist(&post);
        if !trial.wants(Fault::Kills) {
            return Ok(member);
        }
        member.until_done(1).await?;
        sleep(Duration::from_millis(random.below(500))).await;
        trial.injected(Fault::Kills);
        if member.kill().await? {
            trial.observed(Fault::Kills);
        }
    }
}
