use std::process::ExitCode;
use std::time::Instant;

use anyhow::anyhow;
use clap::Args;
use handstamp::laboratory::{Mutant, arrivals, mutate};
use serde::Serialize;

use crate::sim::{self, Promise};
use crate::{guard, seeds, services};

#[derive(Debug, Args)]
pub struct Arguments {
    /// Run this one alone.
    #[arg(long, value_parser = |name: &str| Mutant::find(name).ok_or_else(|| anyhow!("no mutant of that name")))]
    only: Option<Mutant>,
    /// How many seeds each may survive, and how many must be clean without any.
    #[arg(long, default_value_t = 3_000)]
    seeds: u64,
    /// End with one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Summary {
    experiment: &'static str,
    mutants: usize,
    caught: usize,
    /// Kept seeds that do not show their mistake any more.
    kept_seeds_lost: usize,
    /// What the code that ships broke over the same seeds.
    violations_without: usize,
    seconds: f64,
    results: Vec<Fate>,
}

/// What became of one mutant.
#[derive(Serialize)]
struct Fate {
    mutant: &'static str,
    /// The promise that it was seen to break.
    caught_by: Option<Promise>,
    first_seed: Option<u64>,
    seeds: u64,
    /// How often its place was reached.
    arrivals: u64,
}

/// Fails if a mutant is not caught, or if anything is caught without one.
pub fn run(arguments: &Arguments) -> ExitCode {
    let mutants = arguments.only.as_ref().map_or(Mutant::ALL, std::slice::from_ref);
    if mutants.contains(&Mutant::GuardOutsideWhere)
        && let Err(error) = services::require()
    {
        eprintln!("{error:#}");
        return ExitCode::FAILURE;
    }
    let started = Instant::now();
    mutate(None);
    let clean = seeds::first_violation(arguments.seeds);
    if let Some((violation, _)) = &clean {
        eprintln!("without a mutant: {violation}");
    }
    let results: Vec<_> = mutants.iter().map(|&mutant| fate(mutant, arguments.seeds)).collect();
    let lost = sim::regressions().filter(|(_, mutant)| mutants.contains(mutant)).filter(is_lost).count();
    let summary = Summary {
        experiment: "mutants",
        mutants: results.len(),
        caught: results.iter().filter(|fate| fate.caught_by.is_some()).count(),
        kept_seeds_lost: lost,
        violations_without: usize::from(clean.is_some()),
        seconds: started.elapsed().as_secs_f64(),
        results,
    };
    if arguments.json {
        println!("{}", serde_json::to_string(&summary).expect("numbers and strings"));
    } else {
        println!("{} of {} caught, {:.1} s", summary.caught, summary.mutants, summary.seconds);
    }
    let well = summary.caught == summary.mutants && lost == 0 && clean.is_none();
    if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether a seed that was kept for a mistake does not find it any more: the model has changed.
fn is_lost(&(seed, mutant): &(u64, Mutant)) -> bool {
    mutate(Some(mutant));
    let (_, violation) = sim::run(seed, false);
    mutate(None);
    if violation.is_none() {
        eprintln!("seed {seed} is kept for {}, and does not find it any more", mutant.name());
    }
    violation.is_none()
}

/// Runs a mutant until it breaks a promise.
fn fate(mutant: Mutant, seeds: u64) -> Fate {
    let caught = if mutant == Mutant::GuardOutsideWhere {
        on_a_database(mutant)
    } else {
        mutate(Some(mutant));
        let caught = seeds::first_violation(seeds).or_else(|| at_a_kept_seed(mutant, seeds));
        caught.map_or((None, None, seeds), |(violation, run)| {
            (Some(violation.promise), Some(violation.seed), run)
        })
    };
    let arrivals = arrivals();
    mutate(None);
    let (caught_by, first_seed, seeds) = caught;
    let fate = Fate { mutant: mutant.name(), caught_by, first_seed, seeds, arrivals };
    eprintln!("{fate}");
    fate
}

/// Some mistakes are too rare for the first seeds: one that shows them is kept.
fn at_a_kept_seed(mutant: Mutant, seeds: u64) -> Option<(sim::Violation, u64)> {
    let mut kept = sim::regressions().filter(|(_, of)| *of == mutant);
    kept.find_map(|(seed, _)| sim::run(seed, false).1).map(|violation| (violation, seeds + 1))
}

/// The mutant must do the harm, and the code that ships must not.
fn on_a_database(mutant: Mutant) -> (Option<Promise>, Option<u64>, u64) {
    let well = guard::moves_past_what_was_rolled_back();
    mutate(Some(mutant));
    let harmed = guard::moves_past_what_was_rolled_back();
    for error in [&well, &harmed].into_iter().filter_map(|result| result.as_ref().err()) {
        eprintln!("{}: {error:#}", mutant.name());
    }
    let caught = well.is_ok_and(|moves| !moves) && harmed.is_ok_and(|moves| moves);
    (caught.then_some(Promise::OffsetsBehind), None, 0)
}

impl std::fmt::Display for Fate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { mutant, caught_by, first_seed, seeds, arrivals } = self;
        match (caught_by, first_seed) {
            (Some(promise), Some(seed)) => {
                write!(f, "{mutant:<26} caught by {promise:?} at seed {seed}, {seeds} seeds run")
            }
            (Some(promise), None) => write!(f, "{mutant:<26} caught by {promise:?} on a real database"),
            _ if *arrivals == 0 => {
                write!(f, "{mutant:<26} NOT CAUGHT: its place was never reached in {seeds} seeds")
            }
            _ => write!(f, "{mutant:<26} NOT CAUGHT in {seeds} seeds, reached {arrivals} times"),
        }
    }
}
