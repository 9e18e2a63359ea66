use std::num::NonZero;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use clap::Args;
use serde::Serialize;

use crate::sim::{self, Report, Violation};

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
        None => run_all(arguments.seeds),
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

/// Regressions first, then the seeds in order, on all cores.
fn run_all(seeds: u64) -> (Report, Vec<Violation>) {
    let queue: Vec<u64> = sim::regressions().chain(0..seeds).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut report = Report::default();
        let mut violations = Vec::new();
        while let Some(&seed) = queue.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (one, violation) = sim::run(seed, false);
            report += one;
            violations.extend(violation);
        }
        (report, violations)
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let results: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("the simulation does not panic")).collect()
    });
    let mut report = Report::default();
    let mut violations = Vec::new();
    for (part, found) in results {
        report += part;
        violations.extend(found);
    }
    violations.sort_by_key(|violation| violation.seed);
    (report, violations)
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
