//! What can be said on the command line, and what it comes to.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, Parser, Subcommand};
use uuid::Uuid;

use crate::broker;

/// Credits wallets from a Kafka topic while the workers that do it are killed again and again, then
/// counts what reached the database.
///
/// Runs on a broker and a database of its own. With KAFKA_BROKERS and DATABASE_URL set it runs on Kafka
/// and PostgreSQL, on a topic and a database that it makes and removes.
///
/// A delivery is a message that was handled to its end: an effect in the database, or a duplicate skipped.
/// Workers tell of those they skip, and a kill may swallow the last word; effects are counted.
///
/// Exit status: 0 if every event was applied once, 1 if any was lost or applied twice, 2 for bad usage,
/// 3 if the run could not be carried out.
#[derive(Debug, Parser)]
#[expect(clippy::doc_markdown, reason = "`--help` shows these lines as they stand")]
#[command(name = "wallet", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub options: Options,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// One of the processes that are killed.
    #[command(hide = true)]
    Worker(WorkerOptions),
}

#[derive(Debug, Args)]
pub struct Options {
    /// Credits to publish.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub events: u32,
    /// Percentage of them that is sent twice, under the same event id.
    #[arg(long, default_value_t = 5, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(0..=100))]
    pub duplicates: u32,
    /// Hard kills of workers [default: 5, with Kafka 20].
    #[arg(long)]
    pub kills: Option<u32>,
    /// Partitions of the topic.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(i32).range(1..=100))]
    pub partitions: i32,
    /// Accounts that are credited.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub accounts: u32,
    /// Worker processes.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=16))]
    pub workers: u32,
    /// Repeats the accounts, the amounts and the kills of an earlier run.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Shortest time between two kills.
    #[arg(long, value_name = "MS", default_value_t = 1_000)]
    pub min_pause: u64,
    /// Longest time between two kills [default: 3000, with Kafka 8000].
    #[arg(long, value_name = "MS")]
    pub max_pause: Option<u64>,
    /// How long a handler takes besides its statements.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub handler_sleep: u64,
    /// Runs the usual hand-written loop instead: database first, then the offset, no inbox.
    #[arg(long)]
    pub without_inbox: bool,
    /// Prints one JSON object on standard output; text for people goes to standard error.
    #[arg(long)]
    pub json: bool,
    /// Leaves the database, the topic and the workers' logs in place.
    #[arg(long)]
    pub keep: bool,
}

#[derive(Clone, Debug, Args)]
pub struct WorkerOptions {
    #[arg(long)]
    pub topic: String,
    #[arg(long)]
    pub group: String,
    /// A property of the Kafka client, `name=value`.
    #[arg(long = "property", value_parser = property)]
    pub properties: Vec<(String, String)>,
    #[arg(long)]
    pub handler_sleep: u64,
    #[arg(long)]
    pub without_inbox: bool,
}

fn property(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected name=value")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Services that are there already.
#[derive(Clone, Debug)]
pub struct Services {
    pub brokers: String,
    pub database: String,
}

impl Services {
    /// From `KAFKA_BROKERS` and `DATABASE_URL`; none if neither is set.
    pub fn from_env() -> Result<Option<Self>> {
        let read = |name| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        match (read("KAFKA_BROKERS"), read("DATABASE_URL")) {
            (Some(_), Some(database)) if !database.starts_with("postgres") => bail!(
                "DATABASE_URL does not name a PostgreSQL: expected postgres://user:password@host:port/database"
            ),
            (Some(brokers), Some(database)) => Ok(Some(Self { brokers, database })),
            (None, None) => Ok(None),
            (Some(_), None) => bail!(
                "KAFKA_BROKERS is set but DATABASE_URL is not: set both to run on Kafka and PostgreSQL, \
                 or neither to run on the embedded broker and database"
            ),
            (None, Some(_)) => bail!(
                "DATABASE_URL is set but KAFKA_BROKERS is not: set both to run on Kafka and PostgreSQL, \
                 or neither to run on the embedded broker and database"
            ),
        }
    }
}

/// A run that can be carried out.
#[derive(Clone, Debug)]
pub struct Plan {
    pub services: Option<Services>,
    /// Names the topic, the group and the database, so that runs never meet.
    pub run: String,
    pub events: u32,
    pub sent_twice: u32,
    pub kills: u32,
    pub partitions: i32,
    pub accounts: u32,
    pub workers: u32,
    pub seed: u64,
    pub min_pause: Duration,
    pub max_pause: Duration,
    pub handler_sleep: u64,
    pub without_inbox: bool,
    pub keep: bool,
}

impl Plan {
    /// Fills in what was not said and refuses what cannot work.
    pub fn new(options: &Options, services: Option<Services>) -> Result<Self> {
        let (kills, most) = if services.is_some() { (20, 8_000) } else { (5, 3_000) };
        let id = Uuid::now_v7().as_u128();
        let plan = Self {
            run: format!("wallet_{:012x}", id & 0xffff_ffff_ffff),
            events: options.events,
            sent_twice: u32::try_from(u64::from(options.events) * u64::from(options.duplicates) / 100)?,
            kills: options.kills.unwrap_or(kills),
            partitions: options.partitions,
            accounts: options.accounts,
            workers: options.workers,
            // The lower half of a UUID of version 7 is random.
            seed: options.seed.unwrap_or(u64::try_from(id & 0xffff_ffff)?),
            min_pause: Duration::from_millis(options.min_pause),
            max_pause: Duration::from_millis(options.max_pause.unwrap_or(most)),
            handler_sleep: options.handler_sleep,
            without_inbox: options.without_inbox,
            keep: options.keep,
            services,
        };
        if plan.min_pause > plan.max_pause {
            bail!("--min-pause is longer than --max-pause: kills come between the two after each other");
        }
        if plan.kills >= plan.events {
            bail!(
                "--kills {} needs more than {} events: each kill strikes while others are applied",
                plan.kills,
                plan.events
            );
        }
        let possible = broker::mock_capacity(plan.partitions, plan.accounts);
        if plan.services.is_none() && plan.records() > possible {
            bail!(
                "{} records are too many for the embedded broker, which keeps 5 MiB a partition: up to {possible} are \
                 possible with {} partitions. Raise --partitions, or set KAFKA_BROKERS and DATABASE_URL",
                plan.records(),
                plan.partitions
            );
        }
        Ok(plan)
    }

    /// How many records are sent.
    pub fn records(&self) -> u32 {
        self.events.saturating_add(self.sent_twice)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { events, sent_twice, partitions, workers, kills, seed, .. } = self;
        write!(
            f,
            "{events} credits, {sent_twice} of them sent twice, {partitions} partitions, {workers} workers, "
        )?;
        write!(f, "{kills} hard kills, {}seed {seed}", if self.without_inbox { "no inbox, " } else { "" })
    }
}
