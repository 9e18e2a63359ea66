mod list;
mod show;

use clap::Subcommand;

use super::database::Database;
use super::refused::Refused;
use crate::inbox::dead_letters::DeadLetter;

/// Dead letters: messages that were given up
#[derive(Debug, Subcommand)]
pub(super) enum Dlq {
    List(list::List),
    Show(show::Show),
}

impl Dlq {
    pub(super) async fn run(self, database: Database) -> Result<(), Refused> {
        match self {
            Self::List(list) => database.run(list).await,
            Self::Show(show) => database.run(show).await,
        }
    }
}

/// Where a letter came from, for people.
fn origin(letter: &DeadLetter) -> String {
    match (&letter.topic, letter.partition, letter.offset) {
        (Some(topic), Some(partition), Some(offset)) => format!("{topic}[{partition}]@{offset}"),
        _ => letter.source.clone().unwrap_or_default(),
    }
}

/// Whether anybody has still to deal with it.
fn state(letter: &DeadLetter) -> &str {
    match letter.closed_at {
        None => "open",
        Some(_) => letter.outcome.as_deref().unwrap_or("closed"),
    }
}
