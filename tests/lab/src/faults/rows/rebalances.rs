use std::collections::VecDeque;
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
    id: "F5",
    what: "members that join and leave without end",
    asks: &[Ask::new(Fault::MembershipChanges, 40, 500)],
    expects: Expects { duplicates: false, takeovers: false, no_redelivery: true },
    run: |trial| Box::pin(run(trial)),
};

/// How many members a group has at most.
const MOST: usize = 4;

/// A member that had no processor for a moment is not to pass for dead. Static ones leave without a word, and the group
/// waits for the end of their session.
const SESSION: u32 = 6_000;

/// One group for each way of handing out partitions.
async fn run(trial: Arc<Trial>) -> Result<()> {
    let setup = || Setup::default().rate(100);
    let strategy = |name: &str| setup().property("partition.assignment.strategy", name);
    let ways = [
        (strategy("range").session(SESSION), Post::dynamic as fn(String) -> Post),
        (strategy("cooperative-sticky").session(SESSION), Post::dynamic),
        (strategy("range"), Post::fixed),
        (setup().without_session().property("group.protocol", "consumer"), Post::dynamic),
    ];
    let groups = (0..).zip(ways).map(|(purpose, (setup, post))| storm(&trial, setup, post, purpose));
    try_join_all(groups).await?;
    Ok(())
}

async fn storm(trial: &Trial, setup: Setup, post: fn(String) -> Post, purpose: u64) -> Result<()> {
    let stage = trial.stage(setup).await?;
    let mut random = trial.random(purpose);
    let mut members = VecDeque::new();
    for number in 0.. {
        if members.len() >= 2 && !trial.wants(Fault::MembershipChanges) {
            break;
        }
        trial.injected(Fault::MembershipChanges);
        let seen = if members.len() < 2 || (members.len() < MOST && random.chance(500)) {
            members.push_back(join(&stage, post(format!("member-{number}"))).await?);
            true
        } else {
            match members.pop_front() {
                Some(oldest) => leave(&stage, oldest).await?,
                None => false,
            }
        };
        if seen {
            trial.observed(Fault::MembershipChanges);
        }
        sleep(Duration::from_millis(random.below(300))).await;
    }
    trial.close(stage, members.into()).await
}

/// Joined is who was given a partition and has worked on it.
async fn join(stage: &Stage, post: Post) -> Result<Member> {
    let mut member = stage.enlist(&post);
    member.until_done(1).await?;
    Ok(member)
}

/// Left is whose partitions others read.
async fn leave(stage: &Stage, member: Member) -> Result<bool> {
    let (number, held) = (member.number(), stage.journal.held_by(member.number()));
    member.stop().await?;
    Ok(!held.is_empty() && stage.journal.until_read_elsewhere(number, &held).await)
}
