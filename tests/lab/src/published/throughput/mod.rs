//! R34: one consumer and a full topic, as the published ones, as people write them for speed, and as handstamp.

mod contents;
mod latency;
mod old_snapshot;
mod ratios;
mod report;
mod summary;
mod trial;
mod variant;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use clap::builder::PossibleValuesParser;

use self::contents::Contents;
use self::latency::{Idle, Load};
use self::report::Report;
use self::summary::Summary;
use self::variant::{VARIANTS, Variant};
use super::consumers::Consumer;
use super::output::{Output, Progress};
use super::record::Record;
use crate::services;

/// Of the limit, in percent.
const LOADS: [u64; 3] = [20, 50, 80];

#[derive(Debug, Args)]
pub struct Arguments {
    /// How many the fastest get; slow ones get a part of them.
    #[arg(long, default_value_t = 200_000)]
    messages: u64,
    /// How often each variant runs, in turn with the others.
    #[arg(long, default_value_t = 3)]
    rounds: u64,
    /// Only these variants.
    #[arg(long, value_delimiter = ',', value_parser = names())]
    only: Vec<String>,
    /// How long each rate is held for which latency is measured; 0 leaves it out.
    #[arg(long, default_value_t = 6)]
    latency_seconds: u64,
    /// Instead of all this: so many minutes of handstamp beside a snapshot that is never let go.
    #[arg(long, value_name = "MINUTES", conflicts_with_all = ["messages", "rounds", "only", "record"])]
    old_snapshot: Option<f64>,
    /// Enters finished runs here, and does not repeat those that are there.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

fn names() -> PossibleValuesParser {
    VARIANTS.iter().map(|variant| variant.name).into()
}

/// Runs one variant after the other, several times in turn, so that a slow hour of the machine is shared by all.
pub async fn run(arguments: &Arguments) -> Result<Vec<String>> {
    services::require()?;
    if let Some(minutes) = arguments.old_snapshot {
        return old_snapshot::run(minutes, &arguments.output).await;
    }
    let Arguments { messages, rounds, .. } = *arguments;
    let (summaries, mut failings) = all_variants(arguments).await?;
    let mut report = Report { messages, rounds, summaries, loads: Vec::new(), idle: None };
    if arguments.latency_seconds > 0 {
        let measured = latencies(arguments, &mut report).await;
        failings.extend(measured.err().map(|error| format!("latency: {error:#}")));
    }
    if failings.is_empty() {
        for (name, chart) in report.charts() {
            arguments.output.draw(name, &chart)?;
        }
    }
    arguments.output.print(&[report.json()], &report)?;
    Ok(failings)
}

/// What each variant gave, and what went wrong.
async fn all_variants(arguments: &Arguments) -> Result<(Vec<Summary>, Vec<String>)> {
    let Arguments { messages, rounds, only, .. } = arguments;
    let record = Record::open(arguments.record.as_deref())?;
    let chosen = |variant: &&Variant| only.is_empty() || only.iter().any(|name| name == variant.name);
    let contents = Contents::produce(*messages, VARIANTS.iter().filter(chosen)).await?;
    let chosen = VARIANTS.iter().filter(chosen);
    let mut summaries: Vec<_> = chosen.map(|variant| Summary { variant, trials: Vec::new() }).collect();
    let line = Progress::default().line("throughput", rounds * summaries.len() as u64);
    let mut failings = Vec::new();
    for round in 1..=*rounds {
        for Summary { variant, trials } in &mut summaries {
            line.set_message(format!("{}, round {round}", variant.name));
            let feed = contents.of(variant)?;
            let of = format!("throughput {}, round {round}, {messages} messages", variant.name);
            let trial = async || trial::run(variant.consumer, feed, round).await;
            match record.get_or_make(of, trial).await {
                Ok(trial) => trials.push(trial),
                Err(error) => failings.push(format!("{}, round {round}: {error:#}", variant.name)),
            }
            line.inc(1);
        }
    }
    line.finish_and_clear();
    contents.close().await;
    Ok((summaries, failings))
}

async fn latencies(arguments: &Arguments, report: &mut Report) -> Result<()> {
    let seconds = arguments.latency_seconds;
    if let Some(adaptive) = report.summaries.iter().find(|summary| summary.variant.consumer == Consumer::C) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate above 0")]
        let alone = adaptive.messages_per_second() as u64;
        let limit = latency::limit(Consumer::C, alone, seconds).await.context("at the limit")?;
        for percent in LOADS {
            let rate = (limit * percent / 100).max(1);
            let latency = latency::measure(Consumer::C, rate, seconds).await;
            let latency = latency.with_context(|| format!("at {percent} % of the limit"))?;
            report.loads.push(Load { percent, latency });
        }
    }
    let idle = report.idle.insert(Idle::default());
    for _ in 0..arguments.rounds {
        idle.round(seconds).await?;
    }
    Ok(())
}
