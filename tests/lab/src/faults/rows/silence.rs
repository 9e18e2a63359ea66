use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures_util::future::try_join_all;

use crate::faults::link::{Link, Old};
use crate::faults::member::Member;
use crate::faults::row::{Ask, Expects, Fault, Row};
use crate::faults::stage::{Post, Setup};
use crate::faults::trial::Trial;

pub const ROW: Row = Row {
    id: "F10",
    what: "links to PostgreSQL that are open and silent",
    asks: &[Ask::new(Fault::SilentLinks, 3, 30)],
    expects: Expects { duplicates: false, takeovers: false, no_redelivery: false },
    run: |trial| Box::pin(run(trial)),
};

/// From the start of a silence until what was on its way has arrived.
const SETTLED: Duration = Duration::from_millis(500);

async fn run(trial: Arc<Trial>) -> Result<()> {
    let stage = trial.stage(Setup::default()).await?;
    let mut pairs = Vec::new();
    for name in ["0", "1", "2"] {
        let link = Link::to(&stage.database.options()).await?;
        let post = Post::fixed(name).by_way_of(link.url(stage.database.options()));
        pairs.push((stage.enlist(&post), link));
    }
    let silenced = (0..).zip(pairs).map(|(purpose, (member, link))| silence(&trial, member, link, purpose));
    let (members, links): (Vec<_>, Vec<_>) = try_join_all(silenced).await?.into_iter().unzip();
    let closed = trial.close(stage, members).await;
    drop(links);
    closed
}

async fn silence(trial: &Trial, mut member: Member, link: Link, purpose: u64) -> Result<(Member, Link)> {
    let mut random = trial.random(purpose);
    let longest = if trial.asked(Fault::SilentLinks) < 10 { 8_000 } else { 30_000 };
    while trial.wants(Fault::SilentLinks) {
        member.until_done(5).await?;
        trial.injected(Fault::SilentLinks);
        let span = Duration::from_millis(random.between(5_000, longest));
        let old = random.pick(&[Old::Resumed, Old::HalfOpen]);
        let watching = async {
            tokio::time::sleep(SETTLED).await;
            let before = member.said().done;
            tokio::time::sleep(span.saturating_sub(SETTLED * 2)).await;
            member.said().done == before
        };
        let ((), silent) = tokio::join!(link.be_silent(span, old), watching);
        // It finds its way back by itself.
        member.until_done(5).await?;
        if silent {
            trial.observed(Fault::SilentLinks);
        }
    }
    Ok((member, link))
}
