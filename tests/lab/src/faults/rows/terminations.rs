use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::sleep;

use crate::faults::row::{Ask, Expects, Fault, Row};
use crate::faults::stage::{Post, Setup};
use crate::faults::trial::Trial;
use crate::faults::worker::APPLICATION;

pub const ROW: Row = Row {
    id: "F8",
    what: "backends terminated in their transactions",
    asks: &[Ask::new(Fault::BackendTerminations, 200, 1_000)],
    expects: Expects { duplicates: false, takeovers: false, no_redelivery: false },
    run: |trial| Box::pin(run(trial)),
};

async fn run(trial: Arc<Trial>) -> Result<()> {
    let stage = trial.stage(Setup::default().rate(500)).await?;
    let members: Vec<_> = ["0", "1", "2"].map(|name| stage.enlist(&Post::fixed(name))).into();
    let mut random = trial.random(0);
    let mut connection = stage.connect().await?;
    while trial.wants(Fault::BackendTerminations) {
        ensure!(stage.journal.until_applied(1).await, "nothing is applied any more");
        // True once the server has seen it go. A transaction may end between the choice and the blow: that
        // one hits an idle connection.
        let gone: Option<bool> = sqlx::query_scalar(
            "SELECT pg_terminate_backend(pid, 2000) FROM (
                 SELECT pid FROM pg_stat_activity
                 WHERE datname = current_database() AND application_name = $1 AND xact_start IS NOT NULL
                 ORDER BY random() LIMIT 1)",
        )
        .bind(APPLICATION)
        .fetch_optional(&mut connection)
        .await?;
        if let Some(gone) = gone {
            trial.injected(Fault::BackendTerminations);
            if gone {
                trial.observed(Fault::BackendTerminations);
            }
        }
        sleep(Duration::from_millis(random.below(40))).await;
    }
    let failures = stage.journal.counts().failures;
    let noticed: u64 = ["Environment", "Unknown"].iter().filter_map(|kind| failures.get(*kind)).sum();
    if noticed < trial.asked(Fault::BackendTerminations) / 2 {
        trial.blame(format!("the workers noticed only {noticed} of them"));
    }
    trial.close(stage, members).await
}
