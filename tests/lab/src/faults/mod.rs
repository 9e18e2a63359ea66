//! The fault laboratory: worker processes on a PostgreSQL and a Kafka of their own are killed, frozen, cut off
//! and thrown out of their group while records are written without pause, and an oracle counts.
//!
//! # How a row is made
//!
//! One file in [`rows`], with `pub const ROW: Row` and an `async fn run(trial: Arc<Trial>)`; then one line in
//! `rows::ALL` and, for a new kind of fault, one in [`row::Fault`].
//!
//! 1. `trial.stage(Setup::default())` opens a topic, a group, a database and a load. A row may open several.
//! 2. `stage.enlist(&Post::fixed("0"))` starts a worker process; [`member::Member`] waits, kills, freezes, stops.
//! 3. While `trial.wants(Fault::…)`: do it, say `trial.injected(…)`, and say `trial.observed(…)` only once
//!    something else than the doing has shown that it happened (an exit status, the server's catalog, what
//!    another process said). `stage.journal` holds what all processes said.
//! 4. `trial.close(stage, members)` waits until all is dealt with and compares it with the ledger.
//!
//! A row that puts Kafka's offsets ahead of the database looks away meanwhile (`stage.look_away()`), and enters
//! in the ledger which unread records it deletes.
//!
//! What a row finds besides goes into `trial.blame`; an error, a panic or no end in time fails it as well.

mod arena;
mod defect;
mod intruder;
mod journal;
mod ledger;
mod link;
mod load;
mod member;
mod mock;
mod offsets;
mod openings;
mod oracle;
mod progress;
mod report;
mod results;
mod row;
mod rows;
mod stage;
mod tally;
mod trial;
mod worker;

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use clap::Args;
use futures_util::FutureExt;
use tokio::time::timeout;

use self::arena::Arena;
use self::report::{RowReport, Summary};
use self::results::{Origin, Results};
use self::row::{Row, Size};
use self::trial::Trial;
pub use self::worker::{WorkerArguments, work};

#[derive(Debug, Args)]
pub struct Arguments {
    #[arg(long, value_enum, default_value_t = Size::Ci)]
    size: Size,
    /// These rows alone.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// End with one JSON object.
    #[arg(long)]
    json: bool,
    /// Where finished rows are kept [default: a file in the folder for temporary files].
    #[arg(long)]
    state: Option<PathBuf>,
    /// Run finished rows again.
    #[arg(long)]
    fresh: bool,
    /// Keep the logs of workers of rows that pass, too.
    #[arg(long)]
    keep_logs: bool,
    /// Of what is drawn by lot. Processes and servers have a will of their own: the same seed does not give
    /// the same run.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Runs workers that break the promise, to see that the oracle notices: the run must fail.
    #[arg(long, hide = true)]
    broken: Option<worker::Broken>,
}

/// Fails if any row does.
pub fn run(arguments: &Arguments) -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().map_err(Into::into);
    match runtime.and_then(|runtime| runtime.block_on(run_rows(arguments))) {
        Ok(summary) => {
            if arguments.json {
                println!("{}", serde_json::to_string(&summary).expect("numbers and strings"));
            } else {
                println!("{summary}");
            }
            if summary.failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
        }
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run_rows(arguments: &Arguments) -> Result<Summary> {
    let rows = chosen(&arguments.only)?;
    let path = arguments.state.clone().unwrap_or_else(|| Results::default_path(arguments.size));
    let origin = Origin::of(arguments)?;
    let mut results =
        if arguments.fresh { Results::fresh(&path, origin) } else { Results::open(&path, origin)? };
    let mut arena = None;
    let mut reports = Vec::new();
    for row in rows {
        let report = if let Some(report) = results.get(row.id) {
            report.clone()
        } else {
            let arena = match &arena {
                Some(arena) => Arc::clone(arena),
                None => Arc::clone(
                    arena.insert(Arc::new(Arena::open(arguments, path.with_extension("logs")).await)),
                ),
            };
            let report = run_row(arena, *row, arguments.size).await;
            results.keep(report.clone())?;
            report
        };
        if arguments.json {
            eprintln!("{report}");
        } else {
            println!("{report}");
        }
        reports.push(report);
    }
    Ok(Summary::new(arguments.size.name(), reports))
}

async fn run_row(arena: Arc<Arena>, row: Row, size: Size) -> RowReport {
    let started = Instant::now();
    let trial = Arc::new(Trial::new(arena, row, size));
    if let Err(error) = ended((row.run)(Arc::clone(&trial)), size.limit()).await {
        trial.blame(format!("{error:#}"));
    }
    trial.finish(started.elapsed())
}

/// How it ended; a panic and no end are errors as well.
async fn ended(run: impl Future<Output = Result<()>>, limit: Duration) -> Result<()> {
    match AssertUnwindSafe(timeout(limit, run)).catch_unwind().await {
        Ok(Ok(ended)) => ended,
        Ok(Err(_)) => bail!("not at its end after {limit:?}, and given up"),
        // What the tests share panics where it fails, and has told why by then.
        Err(_) => bail!("it panicked, see above"),
    }
}

fn chosen(only: &[String]) -> Result<Vec<&'static Row>> {
    for id in only {
        ensure!(rows::ALL.iter().any(|row| row.id == id), "there is no row {id}");
    }
    let wanted = |row: &&Row| only.is_empty() || only.iter().any(|id| id == row.id);
    Ok(rows::ALL.iter().filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[tokio::test]
    async fn a_row_without_end_fails() {
        let error = ended(pending(), Duration::ZERO).await.expect_err("it did not end");
        assert!(error.to_string().contains("not at its end"), "{error}");
    }
}
