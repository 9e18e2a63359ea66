use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use futures_util::future::try_join_all;
use tokio::time::sleep;

use crate::faults::link::{Cut, Link};
use crate::faults::row::{Ask, Expects, Fault, Row};
use crate::faults::stage::{Post, Setup, Stage};
use crate::faults::trial::Trial;

pub const ROW: Row = Row {
    id: "F9",
    what: "links cut behind and before a COMMIT",
    asks: &[Ask::new(Fault::CommitsDoneUnheard, 100, 750), Ask::new(Fault::CommitsUndone, 100, 750)],
    expects: Expects { duplicates: false, takeovers: false, no_redelivery: false },
    run: |trial| Box::pin(run(trial)),
};

async fn run(trial: Arc<Trial>) -> Result<()> {
    let stage = trial.stage(Setup::default()).await?;
    let (mut links, mut members) = (Vec::new(), Vec::new());
    for name in ["0", "1", "2"] {
        let link = Link::to(&stage.database.options()).await?;
        let post = Post::fixed(name).by_way_of(link.url(stage.database.options()));
        let mut member = stage.enlist(&post);
        // A worker that cannot register does not start.
        member.until_done(1).await?;
        members.push(member);
        links.push(link);
    }
    try_join_all((0..).zip(&links).map(|(purpose, link)| cut(&trial, &stage, link, purpose))).await?;
    trial.close(stage, members).await
}

async fn cut(trial: &Trial, stage: &Stage, link: &Link, purpose: u64) -> Result<()> {
    let mut random = trial.random(purpose);
    loop {
        let cuts =
            [(Fault::CommitsDoneUnheard, Cut::BehindCommit), (Fault::CommitsUndone, Cut::BeforeCommit)];
        let wanted: Vec<_> = cuts.into_iter().filter(|(fault, _)| trial.wants(*fault)).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        ensure!(stage.journal.until_applied(1).await, "nothing is applied any more");
        let (fault, cut) = random.pick(&wanted);
        if link.cut(cut, Duration::from_secs(5)).await {
            trial.injected(fault);
        }
        sleep(Duration::from_millis(random.below(60))).await;
        // What the record was found to be when it was tried again tells which of the two it was.
        let counts = stage.journal.counts();
        trial.observed_in_all(Fault::CommitsDoneUnheard, counts.unheard_done);
        trial.observed_in_all(Fault::CommitsUndone, counts.unheard_undone);
    }
}
