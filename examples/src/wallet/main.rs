//! The main demonstration: credits applied once while the workers are killed.

mod broker;
mod counts;
mod database;
mod handlers;
mod offsets;
mod options;
mod plain;
mod progress;
mod publish;
mod report;
mod run;
mod schedule;
mod verdict;
mod worker;
mod workers;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use tracing_subscriber::EnvFilter;

use crate::options::{Cli, Command, Plan, Services};

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Some(Command::Worker(options)) = cli.command {
        log();
        return exit(worker::run(options).await.map(|()| true));
    }
    let plan = match Services::from_env().and_then(|services| Plan::new(&cli.options, services)) {
        Ok(plan) => plan,
        Err(error) => {
            eprintln!("wallet: {error:#}");
            return ExitCode::from(2);
        }
    };
    exit(demonstrate(&plan, cli.options.json).await)
}

fn exit(holds: Result<bool>) -> ExitCode {
    match holds {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("wallet: {error:#}");
            ExitCode::from(3)
        }
    }
}

/// Runs, prints the verdict, and says whether it is good.
async fn demonstrate(plan: &Plan, json: bool) -> Result<bool> {
    eprintln!("wallet: {plan}");
    let verdict = run::run(plan).await?;
    if json {
        eprintln!("{verdict}");
        println!("{}", serde_json::to_string(&verdict).context("cannot write the verdict")?);
    } else {
        println!("{verdict}");
    }
    Ok(verdict.holds())
}

fn log() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
}
