use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::time::sleep;

use crate::faults::row::{Ask, Expects, Fault, Row};
use crate::faults::stage::{Post, Setup, Stage};
use crate::faults::trial::Trial;
use crate::faults::worker::APPLICATION;

pub const ROW: Row = Row {
    id: "F7",
    what: "PostgreSQL stopped at once, and crashed by a backend",
    asks: &[Ask::new(Fault::DatabaseCrashes, 10, 150), Ask::new(Fault::BackendKills, 3, 50)],
    expects: Expects { duplicates: false, takeovers: false, no_redelivery: false },
    run: |trial| Box::pin(run(trial)),
};

async fn run(trial: Arc<Trial>) -> Result<()> {
    let stage = trial.stage(Setup::default()).await?;
    let members: Vec<_> = ["0", "1", "2"].map(|name| stage.enlist(&Post::fixed(name))).into();
    let mut random = trial.random(0);
    loop {
        let faults = [Fault::DatabaseCrashes, Fault::BackendKills].into_iter();
        let wanted: Vec<_> = faults.filter(|fault| trial.wants(*fault)).collect();
        if wanted.is_empty() {
            break;
        }
        let fault = random.pick(&wanted);
        ensure!(stage.journal.until_applied(20).await, "nothing is applied any more");
        sleep(Duration::from_millis(random.below(300))).await;
        let before = stage.connect().await?;
        trial.injected(fault);
        if fault == Fault::BackendKills {
            kill_a_backend(&stage).await?;
        } else {
            trial.arena.postgres.stop().await;
            stage.journal.strike_all();
            trial.arena.postgres.start().await;
        }
        if crashed(&stage, before).await? {
            trial.observed(fault);
        }
    }
    trial.close(stage, members).await
}

/// Kills one that is at work for a worker. The server then ends all others and recovers.
async fn kill_a_backend(stage: &Stage) -> Result<()> {
    let mut connection = stage.connect().await?;
    let victim: i32 = sqlx::query_scalar(
        "SELECT pid FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = $1 ORDER BY backend_xid IS NULL LIMIT 1",
    )
    .bind(APPLICATION)
    .fetch_optional(&mut connection)
    .await?
    .context("no worker is connected")?;
    stage.journal.strike_all();
    // By the server itself, which may be in a container. The answer does not outlive it.
    let kill = format!("COPY (SELECT 1) TO PROGRAM 'kill -KILL {victim}'");
    let _broken = sqlx::query(AssertSqlSafe(kill)).execute(&mut connection).await;
    Ok(())
}

/// Whether a connection from before is gone, and a new one can be made.
async fn crashed(stage: &Stage, mut before: PgConnection) -> Result<bool> {
    for _ in 0..500 {
        if before.ping().await.is_err() && stage.connect().await.is_ok() {
            return Ok(true);
        }
        sleep(Duration::from_millis(20)).await;
    }
    Ok(false)
}
