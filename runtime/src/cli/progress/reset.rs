use clap::Args;
use sqlx::Pool;

use super::change::Plan;
use super::subject;
use crate::cli::brokers::Brokers;
use crate::cli::refused::Refused;
use crate::cli::{database, output};
use crate::inbox::Store;
use crate::source::kafka::{PartitionLog, TopicLog};

/// Says where a consumer goes on, whatever Kafka and the database say
#[derive(Debug, Args)]
pub(in crate::cli) struct Reset {
    /// The consumer's name
    consumer: String,
    /// The topic
    #[arg(long)]
    topic: String,
    /// Only this partition
    #[arg(long, value_name = "N")]
    partition: Option<i32>,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    brokers: Brokers,
    /// Do it; without, only what would change is shown
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Target {
    /// At the start of the log: what was applied before is skipped
    #[arg(long)]
    to_start: bool,
    /// Behind what is there now: what has not been read is never applied
    #[arg(long)]
    to_end: bool,
    /// At this offset
    #[arg(long, value_name = "OFFSET")]
    to: Option<i64>,
}

impl database::Command for Reset {
    async fn run<DB: Store>(self, pool: &Pool<DB>) -> Result<(), Refused> {
        let Self { consumer, topic, partition, target, brokers, yes } = self;
        let kafka = brokers.required()?;
        let (consumer, admin) = subject(pool, &consumer, &topic, &kafka).await?;
        let log = admin.topic(&topic).map_err(Refused::failed)?;
        let mut offsets = Vec::new();
        for log in chosen(&topic, &log, partition)? {
            offsets.push((log.partition, target.offset(&topic, log)?));
        }
        let plan = Plan::new(pool, &consumer, &topic, &log, offsets).await?;
        plan.show()?;
        if !yes {
            return output::text("nothing is changed yet: run it again with --yes to do it");
        }
        plan.carry_out(pool).await
    }
}

impl Target {
    fn offset(&self, topic: &str, log: &PartitionLog) -> Result<i64, Refused> {
        let PartitionLog { partition, low, high } = *log;
        match self.to {
            Some(offset) if offset < low || offset > high => Err(Refused::failed(format!(
                "offset {offset} is not in the log of {topic}[{partition}], which is {low}..{high}: give one of these"
            ))),
            Some(offset) => Ok(offset),
            None if self.to_end => Ok(high),
            None => Ok(low),
        }
    }
}

fn chosen<'a>(
    topic: &str,
    log: &'a TopicLog,
    partition: Option<i32>,
) -> Result<Vec<&'a PartitionLog>, Refused> {
    let Some(partition) = partition else {
        return Ok(log.partitions.iter().collect());
    };
    let found = log.partition(partition).ok_or_else(|| {
        let count = log.partitions.len();
        Refused::failed(format!(
            "topic `{topic}` has no partition {partition}: it has {count}, numbered from 0"
        ))
    })?;
    Ok(vec![found])
}
