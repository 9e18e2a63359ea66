use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures_util::future::try_join_all;
use tokio::time::{Instant, sleep};

use super::broker::answers;
use crate::faults::member::{Member, PATIENCE};
use crate::faults::oracle::{Copies, Letter};
use crate::faults::row::{Ask, Expects, Fault, Row};
use crate::faults::stage::{Post, Setup, Stage};
use crate::faults::trial::Trial;

pub const ROW: Row = Row {
    id: "F21",
    what: "topics for dead letters that are missing, too small or on a broker that is killed",
    asks: &[
        Ask::new(Fault::MissingLetterTopics, 2, 20),
        Ask::new(Fault::SmallLetterTopics, 2, 20),
        Ask::new(Fault::BrokerRestarts, 2, 20),
    ],
    expects: Expects { duplicates: false, takeovers: false, no_redelivery: false },
    run: |trial| Box::pin(run(trial)),
};

const STAGES: usize = 2;
/// Of a thousand records, those that are parked.
const POISON: u64 = 60;
/// How many letters have to come, and records be applied, while copies are refused.
const LETTERS: usize = 5;
const APPLIED: u64 = 20;
const SIZE: &str = "max.message.bytes";
/// No copy is so small.
const TOO_SMALL: &str = "64";
const LARGE_ENOUGH: &str = "1048588";

/// A topic is missing once: each round has stages of its own.
async fn run(trial: Arc<Trial>) -> Result<()> {
    while ROW.asks.iter().any(|ask| trial.wants(ask.fault)) {
        let stages =
            try_join_all((0..STAGES).map(|_| trial.stage(Setup::default().rate(100).copying(POISON))));
        let stages = stages.await?;
        let crews: Vec<Vec<Member>> = stages.iter().map(enlist).collect();
        let lanes = stages.iter().zip(&crews).map(|(stage, crew)| refuse_copies(&trial, stage, crew));
        try_join_all(lanes).await?;
        for _ in 0..2 {
            restart_the_broker(&trial, &stages).await?;
        }
        try_join_all(stages.into_iter().zip(crews).map(|(stage, crew)| trial.close(stage, crew))).await?;
    }
    Ok(())
}

fn enlist(stage: &Stage) -> Vec<Member> {
    ["0", "1"].map(|name| stage.enlist(&Post::fixed(name))).into()
}

async fn refuse_copies(trial: &Trial, stage: &Stage, crew: &[Member]) -> Result<()> {
    let copies = stage.copies.as_ref().context("its members copy dead letters")?;
    trial.injected(Fault::MissingLetterTopics);
    let held = held_up(stage, copies).await?;
    until_logged(crew, "does not exist: create it").await?;
    // Fails if it is there after all.
    copies.topic().make(1).await;
    until_copied(copies, &held).await?;
    trial.observed(Fault::MissingLetterTopics);

    trial.injected(Fault::SmallLetterTopics);
    copies.topic().configure(SIZE, TOO_SMALL).await;
    until_logged(crew, "raise its max.message.bytes").await?;
    let held = held_up(stage, copies).await?;
    copies.topic().configure(SIZE, LARGE_ENOUGH).await;
    until_copied(copies, &held).await?;
    trial.observed(Fault::SmallLetterTopics);
    Ok(())
}

/// Waits until a member has said so: it has tried.
async fn until_logged(crew: &[Member], words: &str) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !crew.iter().any(|member| member.has_logged(words)) {
        ensure!(Instant::now() < deadline, "no copy was refused: nobody logs that \"{words}\"");
        sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// Waits until more letters were written and records applied: nothing waits for copies. All letters.
async fn held_up(stage: &Stage, copies: &Copies) -> Result<BTreeSet<Letter>> {
    let before = letters(stage, copies).await?.len();
    ensure!(stage.journal.until_applied(APPLIED).await, "nothing is applied while copies are refused");
    let deadline = Instant::now() + PATIENCE;
    loop {
        let letters = letters(stage, copies).await?;
        if letters.len() >= before + LETTERS {
            return Ok(letters);
        }
        ensure!(Instant::now() < deadline, "nothing is parked while copies are refused");
        sleep(Duration::from_millis(50)).await;
    }
}

async fn restart_the_broker(trial: &Trial, stages: &[Stage]) -> Result<()> {
    let kafka = &trial.arena.kafka;
    trial.injected(Fault::BrokerRestarts);
    kafka.kill().await;
    let silent = !answers(kafka.brokers()).await;
    kafka.start().await;
    for stage in stages {
        let copies = stage.copies.as_ref().context("its members copy dead letters")?;
        let held = held_up(stage, copies).await?;
        until_copied(copies, &held).await?;
    }
    if silent {
        trial.observed(Fault::BrokerRestarts);
    }
    Ok(())
}

async fn letters(stage: &Stage, copies: &Copies) -> Result<BTreeSet<Letter>> {
    Ok(copies.letters(&mut stage.connect().await?).await?)
}

async fn until_copied(copies: &Copies, letters: &BTreeSet<Letter>) -> Result<()> {
    copies.until_all(letters).await.map_err(anyhow::Error::msg)
}
