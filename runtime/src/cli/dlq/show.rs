use clap::Args;
use serde_json::{Value, json};
use sqlx::Pool;
use uuid::Uuid;

use super::{document, origin, state};
use crate::cli::printable::{hex, lossless, printable};
use crate::cli::refused::Refused;
use crate::cli::utc::utc;
use crate::cli::{database, output};
use crate::inbox::Store;
use crate::inbox::dead_letters::{self, DeadLetter};
use crate::key::Kind;

/// Shows all of a dead letter: why, where from, headers, key and payload
#[derive(Debug, Args)]
pub(in crate::cli) struct Show {
    /// Its number, as `dlq list` has it
    id: i64,
    /// Print one JSON document; bytes that are not text are in hexadecimal
    #[arg(long)]
    json: bool,
}

impl database::Command for Show {
    async fn run<DB: Store>(self, pool: &Pool<DB>) -> Result<(), Refused> {
        let letter = dead_letters::show(pool, self.id).await?;
        if self.json { output::json(&whole_document(&letter)) } else { output::text(page(&letter)) }
    }
}

fn page(letter: &DeadLetter) -> String {
    let mut lines = vec![format!("dead letter {} of `{}`, {}", letter.id, letter.consumer, state(letter))];
    let mut line = |name: &str, value: String| lines.push(format!("{name:<12} {value}"));
    line("from", origin(letter));
    line("reason", letter.reason.clone());
    line("attempts", letter.attempts.to_string());
    line("parked", utc(letter.parked_at));
    if let Some(closed_at) = letter.closed_at {
        line("closed", utc(closed_at));
    }
    if let Some(milliseconds) = letter.timestamp {
        line("record time", utc(milliseconds.div_euclid(1000)));
    }
    line("error", printable(letter.error.as_bytes()));
    let event_key = letter.event_key.as_deref().map(event_key);
    line("event key", event_key.map_or_else(|| "none".to_owned(), |key| printable(key.as_bytes())));
    line("message key", letter.message_key.as_deref().map_or_else(|| "none".to_owned(), printable));
    for (name, value) in &letter.headers {
        let value = value.map_or_else(|| "null".to_owned(), printable);
        line("header", format!("{}: {value}", printable(name)));
    }
    match &letter.payload {
        Some(payload) => line("payload", format!("{} bytes\n{}", payload.len(), printable(payload))),
        None => line("payload", "none (a tombstone)".to_owned()),
    }
    lines.join("\n")
}

/// A stored key as the view `processed_messages` shows it: a UUID or text as such, others in hexadecimal.
fn event_key(stored: &[u8]) -> String {
    const UUID: u8 = Kind::Uuid as u8;
    const TEXT: u8 = Kind::Text as u8;
    let readable = match stored {
        [UUID, uuid @ ..] => Uuid::from_slice(uuid).ok().map(|uuid| uuid.to_string()),
        [TEXT, text @ ..] => str::from_utf8(text).ok().map(str::to_owned),
        _ => None,
    };
    readable.unwrap_or_else(|| hex(stored))
}

/// The same as in the list, and all that the message came with.
fn whole_document(letter: &DeadLetter) -> Value {
    let headers = letter
        .headers
        .iter()
        .map(|(name, value)| json!({ "name": lossless(name), "value": value.map(lossless) }));
    let mut document = document(letter);
    document["event_key"] = json!(letter.event_key.as_deref().map(event_key));
    document["message_key"] = json!(letter.message_key.as_deref().map(lossless));
    document["headers"] = headers.collect();
    document["payload"] = json!(letter.payload.as_deref().map(lossless));
    document["timestamp_ms"] = json!(letter.timestamp);
    document
}
