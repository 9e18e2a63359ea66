//! R35: what a remembered id costs, in a table as it is usually written and in handstamp's inbox, and what claiming
//! one more does as the inbox grows.

mod claims;
mod ids;
mod report;
mod tables;

use anyhow::Result;
use clap::Args;

use self::claims::ClaimCost;
use self::ids::Ids;
use self::report::Report;
use super::output::{Output, Progress};
use crate::services;

#[derive(Debug, Args)]
pub struct Arguments {
    /// How many ids each table remembers.
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// Claim in tables of 1 and 10 million rows instead of 100,000 and 1 million: ten minutes and 3 GB.
    #[arg(long)]
    large: bool,
    #[command(flatten)]
    output: Output,
}

/// How many rows the tables have in which claims are timed.
const SIZES: [u64; 2] = [100_000, 1_000_000];
const LARGE_SIZES: [u64; 2] = [1_000_000, 10_000_000];

/// Fills one table after the other.
pub async fn run(arguments: &Arguments) -> Result<Vec<String>> {
    services::require()?;
    let progress = Progress::default();
    let sizes = if arguments.large { LARGE_SIZES } else { SIZES };
    let claimed = [Ids::UuidV4, Ids::UuidV7];
    let length = arguments.rows * 2 * Ids::ALL.len() as u64 + sizes[1] * claimed.len() as u64;
    let line = progress.line("storage", length);
    let mut report = Report::of(arguments.rows);
    for ids in Ids::ALL {
        line.set_message(ids.name());
        report.plain.push(tables::plain(ids, arguments.rows, &line).await?);
        report.handstamp.push(tables::handstamp(ids, arguments.rows, &line).await?);
    }
    for ids in claimed {
        line.set_message(format!("claims, {}", ids.name()));
        report.claims.push(ClaimCost::measure(ids, sizes, &line).await?);
    }
    line.finish_and_clear();
    arguments.output.draw("storage", &report.chart())?;
    arguments.output.print(&[report.json()], &report)?;
    Ok(Vec::new())
}
