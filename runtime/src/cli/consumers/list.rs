use clap::Args;
use serde_json::json;
use sqlx::Pool;

use crate::cli::refused::Refused;
use crate::cli::{database, output};
use crate::inbox::{Store, consumers};

/// Lists the registered consumers
#[derive(Debug, Args)]
pub(in crate::cli) struct List {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl database::Command for List {
    async fn run<DB: Store>(self, pool: &Pool<DB>) -> Result<(), Refused> {
        let consumers = consumers::list(pool).await?;
        if self.json {
            let document = consumers.iter().map(|consumer| {
                json!({
                    "name": consumer.name,
                    "key_definition": consumer.key_definition,
                    "handler": consumer.handler,
                    "group": consumer.group,
                    "topics": consumer.topics,
                })
            });
            return output::json(&document.collect::<Vec<_>>());
        }
        let mut table = output::table(["consumer", "key", "handler", "group", "topics"]);
        for consumer in consumers {
            table.add_row([
                consumer.name,
                consumer.key_definition,
                consumer.handler,
                consumer.group.unwrap_or_default(),
                consumer.topics.join(", "),
            ]);
        }
        output::table_or(
            &table,
            "no consumer is registered yet: a worker registers its consumers when it starts",
        )
    }
}
