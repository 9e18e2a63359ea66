use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::sleep;

use crate::faults::load::{Mix, Slow};
use crate::faults::member::PATIENCE;
use crate::faults::row::{Ask, Expects, Fault, Row};
use crate::faults::stage::{Post, Setup, Stage};
use crate::faults::trial::Trial;
use crate::faults::worker::APPLICATION;

pub const ROW: Row = Row {
    id: "F22",
    what: "slow handlers before a large backlog",
    asks: &[Ask::new(Fault::LongHandlers, 8, 200)],
    expects: Expects { duplicates: false, takeovers: false, no_redelivery: true },
    run: |trial| Box::pin(run(trial)),
};

const PARTITIONS: i32 = 8;
/// Records that each of them is behind, at the least.
const BACKLOG: i64 = 64;
/// All of the backlog is more than a worker may grow to.
const PADDING: usize = 700_000;
const MAX_POLL: u32 = 2_000;
const SLOW: Slow = Slow { usual: 60, long: 2_500 };

/// One worker, which has no other to blame: none of its handlers may cost it its place in the group.
async fn run(trial: Arc<Trial>) -> Result<()> {
    let mix = Mix { rate: 100, slow: Some(SLOW), backlog: BACKLOG, padding: PADDING, ..Mix::default() };
    let setup = Setup { partitions: PARTITIONS, mix, ..Setup::default() };
    let stage = trial.stage(setup.property("max.poll.interval.ms", MAX_POLL.to_string())).await?;
    until_full(&stage).await?;
    let mut member = stage.enlist(&Post::dynamic("0"));
    member.until_done(1).await?;
    let mut long = BTreeSet::new();
    while trial.wants(Fault::LongHandlers) {
        for transaction in long_transactions(&stage).await? {
            if long.insert(transaction) {
                trial.injected(Fault::LongHandlers);
                trial.observed(Fault::LongHandlers);
            }
        }
        sleep(Duration::from_millis(100)).await;
    }
    let journal = Arc::clone(&stage.journal);
    trial.close(stage, vec![member]).await?;
    let counts = journal.counts();
    if counts.starts != u64::try_from(PARTITIONS)? || counts.rebuilds > 0 {
        trial.blame(format!("partitions were given out {} times", counts.starts));
    }
    Ok(())
}

/// Waits until every partition is as far behind as it may be.
async fn until_full(stage: &Stage) -> Result<()> {
    let full = i64::from(PARTITIONS) * BACKLOG;
    let filled = async {
        while stage.behind() < full {
            sleep(Duration::from_millis(50)).await;
        }
    };
    ensure!(tokio::time::timeout(PATIENCE, filled).await.is_ok(), "the backlog does not grow");
    Ok(())
}

/// Those of workers that are open for longer than a member may go without polling.
async fn long_transactions(stage: &Stage) -> Result<Vec<(i32, String)>> {
    let long = sqlx::query_as(
        "SELECT pid, xact_start::text FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = $1
           AND clock_timestamp() - xact_start > make_interval(secs => $2)",
    );
    let seconds = Duration::from_millis(MAX_POLL.into()).as_secs_f64();
    Ok(long.bind(APPLICATION).bind(seconds).fetch_all(&mut stage.connect().await?).await?)
}
