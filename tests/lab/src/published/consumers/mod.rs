//! The consumers that are compared, each a process of its own.

mod a1;
mod a2;
mod b;
mod c;
mod evictions;
mod frozen;
mod loops;
mod meter;
mod plain;
mod reading;
mod tally;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use shipped::{Handling, OnCall, Source, Stall, Work};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

pub use self::loops::Loop;
use self::meter::Meter;
pub use self::reading::Reading;
use self::tally::Tally;
pub use self::tally::{Done, EVICTED, FINISHED, WORKING, now};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Consumer {
    A1,
    A2,
    B,
    C,
    /// c with a poll thread that stalls together with the handler.
    Frozen,
    /// c with each message in a transaction of its own.
    Batch1,
    /// c with a handler that takes all messages of a transaction.
    Bulk,
    /// c with a handler that records what it writes.
    WriteOnly,
    SeedLoop,
    Handwritten,
    HandwrittenKept,
    HandwrittenBatch,
    Pipelined,
    NoInbox,
    HandwrittenBulk,
    BulkNoInbox,
    RawEach,
    Raw,
    BulkRaw,
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
    /// How many messages handstamp may handle at a time.
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
    /// Writes into this file when each message was finished, once all are.
    #[arg(long, requires = "until")]
    times: Option<PathBuf>,
    /// A property of librdkafka, `name=value`.
    #[arg(long = "property", value_parser = property)]
    properties: Vec<(String, String)>,
}

/// What a consumer works with.
struct Task {
    source: Source,
    /// The URL of what the pool is connected to.
    database: String,
    pool: PgPool,
    work: Work,
    tally: Tally,
}

/// Connections that handstamp keeps beside those of its handlers.
const SPARE_CONNECTIONS: u32 = 2;

impl Consumer {
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// How handstamp handles messages, if it is handstamp as it ships.
    pub fn handling(self) -> Option<Handling> {
        match self {
            Self::C => Some(Handling::Adaptive),
            Self::Batch1 => Some(Handling::Batch1),
            Self::Bulk => Some(Handling::Bulk),
            Self::WriteOnly => Some(Handling::WriteOnly),
            _ => None,
        }
    }

    /// How it goes about it, if it is a loop that was written by hand for speed.
    pub fn by_hand(self) -> Option<Loop> {
        match self {
            Self::SeedLoop => Some(Loop::SEED),
            Self::Handwritten => Some(Loop::POOLED),
            Self::HandwrittenKept => Some(Loop::EACH),
            Self::HandwrittenBatch => Some(Loop::BATCH),
            Self::Pipelined => Some(Loop::PIPELINED),
            Self::NoInbox => Some(Loop::NO_INBOX),
            Self::HandwrittenBulk => Some(Loop::BULK),
            Self::BulkNoInbox => Some(Loop::BULK_NO_INBOX),
            Self::RawEach => Some(Loop::RAW_EACH),
            Self::Raw => Some(Loop::RAW),
            Self::BulkRaw => Some(Loop::BULK_RAW),
            _ => None,
        }
    }
}

/// Consumes until the process is told to end.
pub async fn run(arguments: &Arguments) -> Result<()> {
    let task = Task::new(arguments).await?;
    let consumer = arguments.consumer;
    if let Some(handling) = consumer.handling() {
        return c::run(task, handling).await;
    }
    if let Some(by_hand) = consumer.by_hand() {
        return by_hand.run(task).await;
    }
    match consumer {
        Consumer::A1 => a1::run(&task).await,
        Consumer::A2 => a2::run(&task).await,
        Consumer::B => b::run(&task).await,
        _ => frozen::run(task).await,
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
            Consumer::A1 | Consumer::A2 | Consumer::B => 1,
            _ => arguments.lanes + SPARE_CONNECTIONS,
        };
        let pool = connect(&database, connections).await?;
        let meter = Meter::of(&pool).await?;
        Ok(Self {
            source: Source {
                brokers: given("KAFKA_BROKERS")?,
                properties: arguments.properties.clone(),
                topic: arguments.topic.clone(),
                group: arguments.group.clone(),
            },
            database,
            pool,
            work: Work {
                pause: Duration::from_millis(arguments.pause_ms),
                stall,
                on_call: OnCall::default(),
            },
            tally: Tally::new(meter, arguments.until, arguments.times.clone()),
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
