use clap::Args;
use sqlx::Pool;

use super::change::Plan;
use super::subject;
use crate::cli::brokers::Brokers;
use crate::cli::refused::Refused;
use crate::cli::{database, output};
use crate::inbox::Store;

/// Trusts Kafka: a consumer goes on at its group's committed offsets
#[derive(Debug, Args)]
pub(in crate::cli) struct Adopt {
    /// The consumer's name
    consumer: String,
    /// The topic
    #[arg(long)]
    topic: String,
    #[command(flatten)]
    brokers: Brokers,
    /// Change rows that say something else, too
    #[arg(long)]
    yes: bool,
}

impl database::Command for Adopt {
    async fn run<DB: Store>(self, pool: &Pool<DB>) -> Result<(), Refused> {
        let Self { consumer, topic, brokers, yes } = self;
        let kafka = brokers.required()?;
        let (consumer, admin) = subject(pool, &consumer, &topic, &kafka).await?;
        let log = admin.topic(&topic).map_err(Refused::failed)?;
        let committed = admin.committed(&topic, &log).map_err(Refused::failed)?;
        if committed.is_empty() {
            return Err(Refused::failed(format!(
                "Kafka has no committed offset of `{name}`'s group on topic `{topic}`, so there is nothing to trust: \
                 say where to go on with `handstamp progress reset {name} --topic {topic} --to-start`",
                name = consumer.name
            )));
        }
        let plan = Plan::new(pool, &consumer, &topic, &log, committed).await?;
        plan.show()?;
        if plan.overwrites() && !yes {
            return output::text(
                "nothing is changed yet: rows say something else; run it again with --yes to change them",
            );
        }
        plan.carry_out(pool).await
    }
}
