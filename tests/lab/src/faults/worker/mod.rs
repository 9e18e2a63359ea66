//! The process that the laboratory breaks: the runtime with its points compiled in, one handler, and a
//! line on standard output for everything that happens.

mod crash;
mod deposit;
mod mischief;
mod plain;
mod rivalry;
mod told;
mod trigger;

use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use handstamp::{Disposition, Kafka, Notice, Worker};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

pub use self::deposit::{ATTEMPTS, Deposit, Trouble};
pub use self::mischief::Mischief;
pub use self::rivalry::Rivalry;
pub use self::told::{Ending, Told};
pub use self::trigger::Trigger;

/// The name under which PostgreSQL knows the connections of workers.
pub const APPLICATION: &str = "lab-worker";
/// As many as a worker may use at once.
const CONNECTIONS: u32 = 8;

#[derive(Debug, Args)]
pub struct WorkerArguments {
    #[arg(long)]
    pub database: String,
    #[arg(long)]
    pub brokers: String,
    #[arg(long)]
    pub topic: String,
    #[arg(long)]
    pub group: String,
    /// A property of librdkafka.
    #[arg(long = "property", value_parser = property)]
    pub properties: Vec<(String, String)>,
    /// Dead letters are copied to their topic.
    #[arg(long)]
    pub copies: bool,
    /// One message to a transaction.
    #[arg(long)]
    pub alone: bool,
    /// In the order of message keys only.
    #[arg(long, conflicts_with = "alone")]
    pub keyed: bool,
    #[arg(long)]
    pub broken: Option<Broken>,
}

/// A worker that breaks the promise, to see that the oracle notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Broken {
    /// No inbox: effects, then the offset. Must apply some twice.
    EffectsFirst,
    /// No inbox: the offset, then effects. Must lose some.
    OffsetFirst,
}

/// Works until it is told to stop, or breaks.
pub fn work(arguments: &WorkerArguments) -> ExitCode {
    crash::tell_where();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let worked = runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(run(arguments)));
    match worked {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &WorkerArguments) -> Result<()> {
    tracing_subscriber::fmt().with_ansi(false).with_writer(std::io::stderr).init();
    Trigger::arm_from_env()?;
    let pool = pool(&arguments.database)?;
    if let Some(broken) = arguments.broken {
        return plain::consume(arguments, &pool, broken).await;
    }
    let mut kafka = Kafka::new(&*arguments.brokers);
    for (name, value) in &arguments.properties {
        kafka = kafka.property(name, value);
    }
    let mut worker = Worker::builder(pool).kafka(kafka).group(&*arguments.group).observe(tell);
    worker = if arguments.alone {
        worker.consume::<deposit::alone>(&*arguments.topic)
    } else if arguments.keyed {
        worker.consume::<deposit::keyed>(&*arguments.topic)
    } else {
        worker.consume::<deposit::deposit>(&*arguments.topic)
    };
    if arguments.copies {
        worker = worker.copy_dead_letters();
    }
    worker.run().await?;
    Ok(())
}

fn pool(database: &str) -> Result<PgPool> {
    let options = PgConnectOptions::from_str(database)?.application_name(APPLICATION);
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS).acquire_timeout(Duration::from_secs(5));
    Ok(pool.connect_lazy_with(options))
}

fn tell(notice: &Notice) {
    let told = match notice {
        Notice::Started { position, .. } => {
            Told::Started { partition: position.partition, offset: position.offset }
        }
        Notice::Ended { partition, .. } => Told::Ended { partition: *partition },
        Notice::Done { position, disposition, .. } => {
            let ending = match disposition {
                Disposition::Applied => Ending::Applied,
                Disposition::Parked => Ending::Parked,
                Disposition::Skipped => Ending::Skipped,
                _ => Ending::Known,
            };
            Told::Done { partition: position.partition, offset: position.offset, ending }
        }
        Notice::Failed { position, attempt, kind, error, .. } => Told::Failed {
            partition: position.partition,
            offset: position.offset,
            attempt: *attempt,
            kind: format!("{kind:?}"),
            error: error.clone(),
        },
        Notice::Refused { partition, reason, .. } => {
            Told::Refused { partition: *partition, reason: reason.clone() }
        }
        Notice::Rebuilt { error, .. } => Told::Rebuilt { error: error.clone() },
        _ => return,
    };
    told.say();
}

fn property(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("name=value is expected")?;
    Ok((name.to_owned(), value.to_owned()))
}
