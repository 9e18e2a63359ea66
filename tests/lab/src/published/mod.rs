//! The published experiments, run again: consumers as they are often written beside handstamp, under the same
//! kills, stalls and load, counted by somebody who shares nothing with them.

mod abreast;
mod books;
mod chart;
mod consumers;
mod end;
mod feed;
mod group;
mod inbox;
mod kill;
mod member;
mod output;
mod record;
mod statistics;
mod storage;
mod throughput;
mod zombie;

use std::process::ExitCode;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum Experiment {
    /// R32: consumers that are killed while they credit.
    Kill(kill::Arguments),
    /// R33: consumers that stall for longer than max.poll.interval.ms, and go on as if nothing had happened.
    Zombie(zombie::Arguments),
    /// R34: one consumer and a full topic.
    Throughput(throughput::Arguments),
    /// R35: bytes that the database needs to remember an id.
    Storage(storage::Arguments),
    /// One consumer process of an experiment.
    #[command(hide = true)]
    Consume(consumers::Arguments),
}

/// Fails if handstamp did, or if the experiment showed nothing.
pub fn run(experiment: &Experiment) -> ExitCode {
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("no threads can be started: {error}");
            return ExitCode::FAILURE;
        }
    };
    let failings = runtime.block_on(async {
        match experiment {
            Experiment::Kill(arguments) => kill::run(arguments).await,
            Experiment::Zombie(arguments) => zombie::run(arguments).await,
            Experiment::Throughput(arguments) => throughput::run(arguments).await,
            Experiment::Storage(arguments) => storage::run(arguments).await,
            Experiment::Consume(arguments) => consumers::run(arguments).await.map(|()| Vec::new()),
        }
    });
    match failings {
        Ok(failings) if failings.is_empty() => ExitCode::SUCCESS,
        Ok(failings) => {
            for failing in failings {
                eprintln!("failed: {failing}");
            }
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
