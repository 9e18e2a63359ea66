//! R33: three consumers, of which one after the other stalls, is evicted, and goes on as if nothing had happened.

mod report;
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

/// Each with what was published of it: in five runs together, of consumers in Python.
const VARIANTS: [Variant; 3] = [
    Variant {
        name: "b",
        consumer: Consumer::B,
        evicted: true,
        published: Some(Published { evictions: 50, duplicates: 50 }),
    },
    Variant {
        name: "c",
        consumer: Consumer::Frozen,
        evicted: true,
        published: Some(Published { evictions: 50, duplicates: 0 }),
    },
    Variant { name: "c_handler", consumer: Consumer::C, evicted: false, published: None },
];

struct Variant {
    name: &'static str,
    consumer: Consumer,
    /// Whether a stall gets the consumer evicted.
    evicted: bool,
    published: Option<Published>,
}

#[derive(Debug, Args)]
pub struct Arguments {
    /// b: the offset after the database, and no inbox; c: handstamp, its polling thread stalled together with the
    /// handler; `c_handler`: handstamp as it ships, where a stalled handler gets nobody evicted.
    #[arg(long, default_value = "all", value_parser = PossibleValuesParser::new(["b", "c", "c_handler", "all"]))]
    variant: String,
    #[arg(long, default_value_t = 5)]
    runs: u64,
    #[arg(long, default_value_t = 5_000)]
    messages: u64,
    /// One message in so many stalls, the first time that it is handled.
    #[arg(long, default_value_t = 500)]
    stall_every: u64,
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
        arguments.output.draw("zombie", &report::chart(&summaries, arguments.stall_every))?;
    }
    arguments.output.print(&summaries, &report::table(&summaries))?;
    failings.extend(summaries.iter().flat_map(failing));
    Ok(failings)
}

async fn run_variant(
    variant: &Variant,
    arguments: &Arguments,
    record: &Record,
    progress: &Progress,
) -> Result<Summary> {
    let Arguments { runs, messages, stall_every, .. } = *arguments;
    let line = progress.line(variant.name, messages);
    let mut trials = Vec::new();
    for run in 1..=runs {
        let name = variant.name;
        let of = format!("zombie {name}, run {run}, {messages} messages, one in {stall_every} stalls");
        let plan = Plan { consumer: variant.consumer, messages, stall_every };
        trials.push(record.get_or_make(of, async || plan.run(run, &line).await).await?);
    }
    line.finish_and_clear();
    Ok(Summary::of(variant.name, variant.evicted, variant.published, trials))
}
