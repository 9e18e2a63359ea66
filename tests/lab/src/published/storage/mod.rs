//! R35: what a remembered id costs, in a table as it is usually written and in handstamp's inbox.

mod ids;
mod report;
mod tables;

use anyhow::Result;
use clap::Args;

use self::ids::Ids;
use self::report::Report;
use super::output::{Output, Progress};
use crate::services;

#[derive(Debug, Args)]
pub struct Arguments {
    /// How many ids each table remembers.
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    #[command(flatten)]
    output: Output,
}

/// Fills one table after the other.
pub async fn run(arguments: &Arguments) -> Result<Vec<String>> {
    services::require()?;
    let progress = Progress::default();
    let line = progress.line("storage", arguments.rows * 2 * Ids::ALL.len() as u64);
    let mut report = Report::of(arguments.rows);
    for ids in Ids::ALL {
        line.set_message(ids.name());
        report.plain.push(tables::plain(ids, arguments.rows, &line).await?);
        report.handstamp.push(tables::handstamp(ids, arguments.rows, &line).await?);
    }
    line.finish_and_clear();
    arguments.output.draw("storage", &report.chart())?;
    arguments.output.print(&[report.json()], &report.table())?;
    Ok(Vec::new())
}
