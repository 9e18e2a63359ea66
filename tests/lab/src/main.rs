//! The laboratory: experiments that try to break the promise.

mod faults;
mod guard;
mod mutants;
mod published;
mod seeds;
mod services;
mod sim;
mod simulate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Experiments that try to break the promise.
#[derive(Debug, Parser)]
#[command(name = "lab")]
struct Lab {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Debug, Subcommand)]
enum Experiment {
    /// The decision core in a simulated world, one seed after the other.
    Sim(simulate::Arguments),
    /// Known-bad changes, one after the other: the simulation must catch each.
    Mutants(mutants::Arguments),
    /// Real Kafka, real PostgreSQL, and worker processes that are killed, frozen and cut off.
    Faults(faults::Arguments),
    /// A process for the fault laboratory to break.
    #[command(hide = true)]
    Worker(faults::WorkerArguments),
    #[command(flatten)]
    Published(published::Experiment),
}

fn main() -> ExitCode {
    match Lab::parse().experiment {
        Experiment::Sim(arguments) => simulate::run(&arguments),
        Experiment::Mutants(arguments) => mutants::run(&arguments),
        Experiment::Faults(arguments) => faults::run(&arguments),
        Experiment::Worker(arguments) => faults::work(&arguments),
        Experiment::Published(experiment) => published::run(&experiment),
    }
}
