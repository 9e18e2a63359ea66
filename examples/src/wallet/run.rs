//! One run: publish, kill, drain, count.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use tokio::signal::ctrl_c;
use tokio::time::{sleep, timeout};

use crate::broker::Broker;
use crate::counts::Counts;
use crate::database::Database;
use crate::offsets::{Offsets, Partition};
use crate::options::Plan;
use crate::progress::Progress;
use crate::publish::Publishing;
use crate::schedule;
use crate::verdict::{Course, Verdict};
use crate::workers::Workers;

/// How long a run goes on without anything happening.
const PATIENCE: Duration = Duration::from_mins(1);

/// Makes database and topic, runs, and removes them, unless they are to be kept or bear witness.
pub async fn run(plan: &Plan) -> Result<Verdict> {
    let directory = tempfile::Builder::new().prefix("wallet-").tempdir()?;
    let broker = Broker::start(plan.services.as_ref())?;
    let database = Database::create(plan, directory.path()).await?;
    if let Err(error) = broker.create_topic(plan).await {
        removed("database", plan, database.remove(plan).await);
        return Err(error);
    }
    let outcome = tokio::select! {
        outcome = carry_out(plan, &broker, &database, directory.path()) => Some(outcome),
        interrupted = ctrl_c() => interrupted.err().map(|error| Err(error.into())),
    };
    let witness = matches!(&outcome, Some(Ok(verdict)) if !verdict.holds()) && !plan.without_inbox;
    if plan.keep || witness {
        eprintln!("wallet: kept: topic and database {}", plan.run);
    } else {
        removed("topic", plan, broker.remove_topic(plan).await);
        removed("database", plan, database.remove(plan).await);
    }
    if plan.keep || witness || matches!(outcome, Some(Err(_))) {
        eprintln!("wallet: kept: {} with the workers' logs", directory.keep().display());
    }
    outcome.unwrap_or_else(|| Err(anyhow!("interrupted")))
}

/// What cannot be removed does not change the outcome.
fn removed(what: &str, plan: &Plan, outcome: Result<()>) {
    if let Err(error) = outcome {
        eprintln!("wallet: remove the {what} {} by hand: {error:#}", plan.run);
    }
}

async fn carry_out(plan: &Plan, broker: &Broker, database: &Database, directory: &Path) -> Result<Verdict> {
    database.prepare(plan).await?;
    let mut publishing = Publishing::new(plan, &broker.servers(), database).await?;
    let offsets = Offsets::new(plan, broker)?;
    broker.open_group(plan).await?;
    let started = Instant::now();
    let mut workers = Workers::start(plan, broker, &database.url, directory)?;
    let progress = Progress::follow(plan, workers.tally())?;
    publishing.slice().await?;
    work_goes_on(&mut workers, 0).await?;
    for kill in schedule::kills(plan) {
        // A fresh slice for every kill: it strikes workers that work.
        sleep(kill.after).await;
        let told = workers.tally().borrow().total();
        publishing.slice().await?;
        work_goes_on(&mut workers, told).await?;
        sleep(kill.into_work).await;
        workers.kill_one(kill.victim).await?;
    }
    let partitions = drain(&mut workers, &offsets, database).await?;
    let took = started.elapsed();
    let tally = workers.stop().await?;
    drop(progress);
    let course = Course { tally, took, partitions, broker: broker.name() };
    Verdict::reach(plan, database, course).await
}

/// Waits until workers have told more than they had.
async fn work_goes_on(workers: &mut Workers, told: u64) -> Result<()> {
    let mut tally = workers.tally();
    if timeout(PATIENCE, tally.wait_for(|tally| tally.total() > told)).await.is_err() {
        workers.check()?;
        bail!("no worker has told anything for {} s: {}", PATIENCE.as_secs(), workers.logs());
    }
    Ok(())
}

/// Waits until every effect is there and every offset committed, or until nothing moves any more.
async fn drain(workers: &mut Workers, offsets: &Offsets, database: &Database) -> Result<Vec<Partition>> {
    let mut connection = database.connect().await?;
    let (mut last, mut moved) = (None, Instant::now());
    loop {
        workers.check()?;
        let now = (offsets.read().await?, Counts::read(&mut connection).await?);
        let (partitions, counts) = &now;
        let committed = partitions.iter().all(|partition| partition.behind() == 0);
        if committed && counts.missing() == 0 || moved.elapsed() > PATIENCE {
            return Ok(now.0);
        }
        if last.as_ref() != Some(&now) {
            (last, moved) = (Some(now), Instant::now());
        }
        sleep(Duration::from_millis(200)).await;
    }
}
