use clap::Args;
use sqlx::Pool;

use super::{document, origin, state};
use crate::cli::printable::one_line;
use crate::cli::refused::Refused;
use crate::cli::utc::utc;
use crate::cli::{database, output};
use crate::inbox::{Store, consumers, dead_letters};

/// How much of an error is shown in a table.
const ERROR_WIDTH: usize = 60;

/// Lists dead letters, the newest first
#[derive(Debug, Args)]
pub(in crate::cli) struct List {
    /// Only those of this consumer
    consumer: Option<String>,
    /// Closed ones as well
    #[arg(long)]
    all: bool,
    /// At most so many
    #[arg(long, default_value_t = 50, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl database::Command for List {
    async fn run<DB: Store>(self, pool: &Pool<DB>) -> Result<(), Refused> {
        if let Some(consumer) = &self.consumer {
            consumers::get(pool, consumer).await?;
        }
        // One more than is shown tells whether there are more.
        let wanted = self.limit.saturating_add(1);
        let mut letters = dead_letters::list(pool, self.consumer.as_deref(), self.all, wanted).await?;
        let shown = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let more = letters.len() > shown;
        letters.truncate(shown);
        if self.json {
            return output::json(&letters.iter().map(document).collect::<Vec<_>>());
        }
        let mut table =
            output::table(["id", "consumer", "reason", "from", "attempts", "parked", "state", "error"]);
        for letter in &letters {
            table.add_row([
                letter.id.to_string(),
                letter.consumer.clone(),
                letter.reason.clone(),
                origin(letter),
                letter.attempts.to_string(),
                utc(letter.parked_at),
                state(letter).to_owned(),
                one_line(&letter.error, ERROR_WIDTH),
            ]);
        }
        output::table_or(&table, if self.all { "no dead letters" } else { "no open dead letters" })?;
        if more {
            output::text(format_args!(
                "… and more: --limit {} shows twice as many",
                self.limit.saturating_mul(2)
            ))?;
        }
        Ok(())
    }
}
