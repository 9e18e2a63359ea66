mod list;
mod show;

use clap::Subcommand;
use serde_json::{Value, json};

use super::database::Database;
use super::refused::Refused;
use super::utc::utc;
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

/// What the list has of a letter, for programs: an object.
fn document(letter: &DeadLetter) -> Value {
    json!({
        "id": letter.id,
        "consumer": letter.consumer,
        "reason": letter.reason,
        "error": letter.error,
        "attempts": letter.attempts,
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "source": letter.source,
        "parked_at": utc(letter.parked_at),
        "closed_at": letter.closed_at.map(utc),
        "outcome": letter.outcome,
    })
}
