use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use serde::Serialize;

use crate::seeds;
use crate::sim::{self, Report};

/// How many violations are printed.
const SHOWN: usize = 10;

#[derive(Debug, Args)]
pub struct Arguments {
    /// How many seeds to run, from 0.
    #[arg(long, default_value_t = 10_000)]
    seeds: u64,
    /// Run this seed alone and print its knobs and every step.
    #[arg(long, conflicts_with_all = ["seeds", "json"])]
    seed: Option<u64>,
    /// End with one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Summary {
    experiment: &'static str,
    #[serde(flatten)]
    report: Report,
    /// The first ones.
    failed_seeds: Vec<u64>,
    seconds: f64,
}

/// Fails if any promise was broken.
pub fn run(arguments: &Arguments) -> ExitCode {
    let started = Instant::now();
    let (report, violations) = match arguments.seed {
        Some(seed) => {
            let (report, violation) = sim::run(seed, true);
            (report, Vec::from_iter(violation))
        }
        None => seeds::run_all(arguments.seeds),
    };
    for violation in violations.iter().take(SHOWN) {
        eprintln!("{violation}");
        eprintln!("    replay: cargo run --release --bin lab -- sim --seed {}", violation.seed);
    }
    let failed_seeds = violations.iter().take(SHOWN).map(|violation| violation.seed).collect();
    let seconds = started.elapsed().as_secs_f64();
    let summary = Summary { experiment: "sim", report, failed_seeds, seconds };
    print(&summary, arguments.json);
    if violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn print(summary: &Summary, json: bool) {
    if json {
        println!("{}", serde_json::to_string(summary).expect("numbers and strings"));
        return;
    }
    let report = &summary.report;
    println!("{} seeds, {} violations, {:.1} s", report.seeds, report.violations, summary.seconds);
    println!("{report:#?}");
}
