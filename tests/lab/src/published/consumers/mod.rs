//! The consumers that are compared, each a process of its own.

mod a1;
mod a2;
mod b;
mod c;
mod evictions;
mod frozen;
mod plain;
mod tally;

use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use shipped::{Source, Stall, Work};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

use tally::Tally;
pub use tally::{EVICTED, FINISHED, WORKING};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Consumer {
    A1,
    A2,
    B,
    C,
    /// c with a poll thread that stalls together with the handler.
    Frozen,
}

/// What a consumer process is told; the brokers and the database come by the environment.
#[derive(Debug, Args)]
pub struct Arguments {
    #[arg(long, value_enum)]
    consumer: Consumer,
    #[arg(long)]
    topic: String,
    #[arg(long)]
    group: String,
    /// How many messages handstamp may handle at a time; the others handle one.
    #[arg(long, default_value_t = 1)]
    lanes: u32,
    /// How long each message takes besides its statements.
    #[arg(long, default_value_t = 0)]
    pause_ms: u64,
    /// One message in so many stalls, the first time that it is handled.
    #[arg(long)]
    stall_every: Option<u64>,
    #[arg(long, default_value_t = 12_000)]
    stall_ms: u64,
    /// Says how long it took once so many messages are finished.
    #[arg(long)]
    until: Option<u64>,
    /// A property of librdkafka, `name=value`.
    #[arg(long = "property", value_parser = property)]
    properties: Vec<(String, String)>,
}

/// What a consumer works with.
struct Task {
    source: Source,
    pool: PgPool,
    work: Work,
    tally: Tally,
}

/// Connections that handstamp keeps beside those of its handlers.
const SPARE_CONNECTIONS: u32 = 2;

impl Consumer {
    pub fn name(self) -> &'static str {
        match self {
            Self::A1 => "a1",
            Self::A2 => "a2",
            Self::B => "b",
            Self::C => "c",
            Self::Frozen => "frozen",
        }
    }
}

/// Consumes until the process is told to end.
pub async fn run(arguments: &Arguments) -> Result<()> {
    let task = Task::new(arguments).await?;
    match arguments.consumer {
        Consumer::A1 => a1::run(&task).await,
        Consumer::A2 => a2::run(&task).await,
        Consumer::B => b::run(&task).await,
        Consumer::C => c::run(task).await,
        Consumer::Frozen => frozen::run(task).await,
    }
}

impl Task {
    async fn new(arguments: &Arguments) -> Result<Self> {
        let given = |name| std::env::var(name).context("a consumer is started by an experiment, not by hand");
        let database = given("DATABASE_URL")?;
        let stall = match arguments.stall_every {
            Some(every) => Some(Stall {
                every,
                lasts: Duration::from_millis(arguments.stall_ms),
                remembered_in: connect(&database, 1).await?,
                on_stall: match arguments.consumer {
                    Consumer::Frozen => frozen::freeze,
                    _ => |_| {},
                },
            }),
            None => None,
        };
        let connections = match arguments.consumer {
            Consumer::C | Consumer::Frozen => arguments.lanes + SPARE_CONNECTIONS,
            _ => 1,
        };
        Ok(Self {
            source: Source {
                brokers: given("KAFKA_BROKERS")?,
                properties: arguments.properties.clone(),
                topic: arguments.topic.clone(),
                group: arguments.group.clone(),
            },
            pool: connect(&database, connections).await?,
            work: Work { pause: Duration::from_millis(arguments.pause_ms), stall },
            tally: Tally::new(arguments.until),
        })
    }
}

async fn connect(database: &str, connections: u32) -> Result<PgPool> {
    Ok(PgPoolOptions::new().max_connections(connections).connect(database).await?)
}

fn property(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("`{text}` is not name=value"))?;
    Ok((name.to_owned(), value.to_owned()))
}
