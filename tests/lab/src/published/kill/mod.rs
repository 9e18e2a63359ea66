//! R32: one consumer, killed and restarted at once, again and again.
//!
//! A kill follows 1 to 8 seconds after the consumer has gone to work. Counted from the kill before it instead,
//! more than half would hit a process that still waits for the session of its predecessor to end: they show
//! nothing, and the duplicates that were published, 182 a kill, could not have come about.

mod report;
mod schedule;
mod trial;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use clap::builder::PossibleValuesParser;

use self::report::{Published, Summary, failing};
use self::trial::Plan;
use super::abreast::abreast;
use super::consumers::Consumer;
use super::output::{Output, Progress};
use super::record::Record;
use crate::services;

/// Each with what was published of it: medians of five runs, of a consumer in Python.
const VARIANTS: [Variant; 4] = [
    Variant { name: "a1", consumer: Consumer::A1, published: Published { duplicates: 3_648, lost: 0 } },
    Variant { name: "a2", consumer: Consumer::A2, published: Published { duplicates: 2_881, lost: 63 } },
    Variant { name: "b", consumer: Consumer::B, published: Published { duplicates: 5, lost: 0 } },
    Variant { name: "c", consumer: Consumer::C, published: Published { duplicates: 0, lost: 0 } },
];

struct Variant {
    name: &'static str,
    consumer: Consumer,
    published: Published,
}

#[derive(Debug, Args)]
pub struct Arguments {
    /// a1: auto-commit, one by one; a2: auto-commit, 100 at a time; b: the offset after the database; c: handstamp.
    #[arg(long, default_value = "all", value_parser = PossibleValuesParser::new(["a1", "a2", "b", "c", "all"]))]
    variant: String,
    #[arg(long, default_value_t = 5)]
    runs: u64,
    #[arg(long, default_value_t = 10_000)]
    messages: u64,
    /// Hard kills in each run, each 1 to 8 seconds after the consumer went to work.
    #[arg(long, default_value_t = 20)]
    kills: usize,
    /// Decides when the consumers die, in all variants alike.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Enters finished runs here, and does not repeat those that are there.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

/// Runs the variants beside each other. Returns what is wrong.
pub async fn run(arguments: &Arguments) -> Result<Vec<String>> {
    services::require()?;
    let record = Record::open(arguments.record.as_deref())?;
    let progress = Progress::default();
    let chosen = VARIANTS.iter().filter(|variant| ["all", variant.name].contains(&&*arguments.variant));
    let runs = chosen.map(|variant| run_variant(variant, arguments, &record, &progress));
    let (summaries, mut failings) = abreast(runs).await;
    if failings.is_empty() {
        arguments.output.draw("kill", &report::chart(&summaries, arguments.messages, arguments.kills))?;
    }
    arguments.output.print(&summaries, &report::table(&summaries))?;
    failings.extend(summaries.iter().flat_map(|summary| failing(summary, arguments.kills as u64)));
    Ok(failings)
}

async fn run_variant(
    variant: &Variant,
    arguments: &Arguments,
    record: &Record,
    progress: &Progress,
) -> Result<Summary> {
    let Arguments { runs, messages, kills, seed, .. } = *arguments;
    let line = progress.line(variant.name, messages);
    let mut trials = Vec::new();
    for run in 1..=runs {
        let name = variant.name;
        let of = format!("kill {name}, run {run}, seed {seed}, {messages} messages, {kills} kills");
        let plan = Plan { consumer: variant.consumer, messages, pauses: schedule::pauses(seed, run, kills) };
        trials.push(record.get_or_make(of, async || plan.run(run, &line).await).await?);
    }
    line.finish_and_clear();
    Ok(Summary::of(variant.name, variant.published, trials))
}
