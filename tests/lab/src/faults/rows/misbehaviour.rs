use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use futures_util::future::try_join_all;
use sqlx::PgConnection;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::faults::ledger::{Event, Fate};
use crate::faults::load::ACCOUNTS;
use crate::faults::member::{Member, PATIENCE};
use crate::faults::row::{Ask, Expects, Fault, Row};
use crate::faults::stage::{Post, Setup, Stage};
use crate::faults::trial::Trial;
use crate::faults::worker::{Mischief, Trouble};

pub const ROW: Row = Row {
    id: "F12",
    what: "handlers that do what they must not",
    asks: &[
        Ask::new(Fault::HiddenErrors, 50, 200),
        Ask::new(Fault::OwnCommits, 20, 200),
        Ask::new(Fault::OwnRollbacks, 20, 200),
        Ask::new(Fault::Panics, 50, 200),
        Ask::new(Fault::ForgottenTransactions, 50, 200),
        Ask::new(Fault::DroppedStatements, 50, 200),
    ],
    expects: Expects { duplicates: false, takeovers: false, no_redelivery: false },
    run: |trial| Box::pin(run(trial)),
};

const KINDS: [(Fault, Fate); 6] = [
    (Fault::HiddenErrors, Fate::Parked(Trouble::Misbehaves(Mischief::HidesError))),
    (Fault::OwnCommits, Fate::Listed(Trouble::Misbehaves(Mischief::Commits))),
    (Fault::OwnRollbacks, Fate::Listed(Trouble::Misbehaves(Mischief::RollsBack))),
    (Fault::Panics, Fate::Parked(Trouble::Misbehaves(Mischief::Panics))),
    (Fault::ForgottenTransactions, Fate::Parked(Trouble::Misbehaves(Mischief::Forgets))),
    (Fault::DroppedStatements, Fate::Applied(Trouble::Misbehaves(Mischief::Drops))),
];

/// How many may wait for workers to stop at them: others would be tried too often meanwhile.
const STOPS: i64 = 4;

/// A handler that ends its transaction stops its worker, which is started again. One message to a transaction: of
/// several all would be listed, whichever of them it was.
async fn run(trial: Arc<Trial>) -> Result<()> {
    let stage = trial.stage(Setup::default().alone()).await?;
    let (over, _) = watch::channel(false);
    let posts = ["0", "1", "2"].map(Post::fixed);
    let members = try_join_all(posts.iter().map(|post| keep(&stage, post, over.subscribe())));
    let misbehaved = async {
        misbehave(&trial, &stage).await?;
        over.send_replace(true);
        Ok(())
    };
    let (members, ()) = tokio::try_join!(members, misbehaved)?;
    trial.close(stage, members).await
}

/// Keeps a post manned. The process that is there in the end is returned.
async fn keep(stage: &Stage, post: &Post, mut over: watch::Receiver<bool>) -> Result<Member> {
    loop {
        let mut member = stage.enlist(post);
        tokio::select! {
            given_up = member.give_up() => given_up?,
            _ = over.wait_for(|over| *over) => {
                // It may have met the last of them, and be about to end by itself. Nothing stops the next one.
                let _of_either_end = member.kill().await;
                return Ok(stage.enlist(post));
            }
        }
    }
}

async fn misbehave(trial: &Trial, stage: &Stage) -> Result<()> {
    let mut random = trial.random(0);
    let mut connection = stage.connect().await?;
    let mut dropping = Vec::new();
    let mut stops = 0;
    let mut idle_since = Instant::now();
    loop {
        let seen = observe(trial, &mut connection, &dropping).await?;
        let may_stop = stops - seen < STOPS;
        let wanted = KINDS
            .iter()
            .filter(|(fault, fate)| trial.wants(*fault) && (may_stop || !matches!(fate, Fate::Listed(_))));
        let wanted: Vec<_> = wanted.copied().collect();
        if wanted.is_empty() {
            if seen == stops {
                return Ok(());
            }
            if idle_since.elapsed() > PATIENCE {
                bail!("only {seen} of {stops} transactions that handlers ended are listed");
            }
        } else {
            let (fault, fate) = random.pick(&wanted);
            let account = i64::try_from(random.below(ACCOUNTS))?;
            let partition = i32::try_from(random.below(16))?;
            let (number, _) = stage.write(Event { account, amount: 1, fate }, partition).await;
            trial.injected(fault);
            stops += i64::from(matches!(fate, Fate::Listed(_)));
            if fault == Fault::DroppedStatements {
                dropping.push(i64::try_from(number)?);
            }
            idle_since = Instant::now();
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// Counts by what the database holds; returns how many messages are listed because of their handlers.
async fn observe(trial: &Trial, connection: &mut PgConnection, dropping: &[i64]) -> Result<i64> {
    let mut letters = Vec::new();
    for (fault, says) in [
        (Fault::HiddenErrors, "hid an error of the database"),
        (Fault::OwnCommits, "committed its inbox transaction by itself"),
        (Fault::OwnRollbacks, "rolled back its inbox transaction by itself"),
        (Fault::Panics, "panicked"),
        (Fault::ForgottenTransactions, "left a nested transaction open"),
    ] {
        let saying = "SELECT count(*) FROM handstamp.dead_letters WHERE strpos(error, $1) > 0";
        let times: i64 = sqlx::query_scalar(saying).bind(says).fetch_one(&mut *connection).await?;
        trial.observed_in_all(fault, u64::try_from(times)?);
        letters.push((fault, times));
    }
    let again = "SELECT count(DISTINCT event) FROM effects WHERE attempt > 1 AND event = ANY($1)";
    let again: i64 = sqlx::query_scalar(again).bind(dropping).fetch_one(connection).await?;
    trial.observed_in_all(Fault::DroppedStatements, u64::try_from(again)?);
    let stops = letters.iter().filter(|(f, _)| matches!(f, Fault::OwnCommits | Fault::OwnRollbacks));
    Ok(stops.map(|(_, times)| times).sum())
}
