//! R34: one consumer and a full topic.

mod report;
mod trial;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use self::report::{Summary, failing};
use super::consumers::Consumer;
use super::feed::Feed;
use super::output::{Output, Progress};
use super::record::Record;
use crate::services;

/// What is compared, each with what was published of it: messages a second, of a consumer in Python.
const VARIANTS: [Variant; 5] = [
    Variant { name: "a1", consumer: Consumer::A1, lanes: 1, published: Some(445.1) },
    Variant { name: "a2", consumer: Consumer::A2, lanes: 1, published: Some(447.5) },
    Variant { name: "b", consumer: Consumer::B, lanes: 1, published: Some(347.8) },
    // One message at a time, as the consumer that was published.
    Variant { name: "c_one_lane", consumer: Consumer::C, lanes: 1, published: Some(323.0) },
    // A lane for each partition, as it is without settings.
    Variant { name: "c", consumer: Consumer::C, lanes: 8, published: None },
];

struct Variant {
    name: &'static str,
    consumer: Consumer,
    /// How many messages it may handle at a time, if it can.
    lanes: u32,
    published: Option<f64>,
}

#[derive(Debug, Args)]
pub struct Arguments {
    #[arg(long, default_value_t = 100_000)]
    messages: u64,
    #[arg(long, default_value_t = 3)]
    runs: u64,
    /// Enters finished runs here, and does not repeat those that are there.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

/// Runs one variant after the other, several times in turn, so that a slow hour of the machine is shared by all.
pub async fn run(arguments: &Arguments) -> Result<Vec<String>> {
    services::require()?;
    let record = Record::open(arguments.record.as_deref())?;
    let progress = Progress::default();
    let Arguments { messages, runs, .. } = *arguments;
    let mut feed = Feed::open().await;
    feed.produce(messages).await?;
    let mut trials = VARIANTS.map(|_| Vec::new());
    let line = progress.line("throughput", runs * VARIANTS.len() as u64);
    for run in 1..=runs {
        for (variant, trials) in VARIANTS.iter().zip(&mut trials) {
            line.set_message(format!("{}, run {run}", variant.name));
            let of = format!("throughput {}, run {run}, {messages} messages", variant.name);
            let trial = async || trial::run(variant.consumer, variant.lanes, &feed, run).await;
            trials.push(record.get_or_make(of, trial).await?);
            line.inc(1);
        }
    }
    line.finish_and_clear();
    feed.close().await;
    let summaries = Summary::of_all(VARIANTS.iter().zip(trials));
    arguments.output.draw("throughput", &report::chart(&summaries, messages))?;
    arguments.output.print(&summaries, &report::table(&summaries))?;
    Ok(summaries.iter().flat_map(|summary| failing(summary, messages)).collect())
}
