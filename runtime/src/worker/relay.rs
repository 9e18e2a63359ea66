//! Copies dead letters to their topics, beside everything else.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use sqlx::Pool;
use tokio::sync::{Notify, watch};
use tracing::warn;

use super::report::Limiter;
use crate::inbox::Store;
use crate::inbox::consumers::ConsumerId;
use crate::inbox::dead_letters::{self, DeadLetter};
use crate::source::kafka::{Copy, Relay, RelayError};

/// How many letters are taken at once.
const BATCH: u32 = 100;
/// How long one batch may take: letters are locked meanwhile, on SQLite the whole database.
const BATCH_LIMIT: Duration = Duration::from_secs(5);
/// How often letters are looked for that nobody announced: those left by another process.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Runs until told to stop, and then once more.
pub(super) async fn run<DB: Store>(
    pool: Pool<DB>,
    relay: Relay,
    consumers: Vec<ConsumerId>,
    parked: Arc<Notify>,
    mut stopping: watch::Receiver<bool>,
) {
    let mut log = Limiter::default();
    // Letters that cannot be copied: the database has them, and a restart tries again.
    let mut left_out = BTreeSet::new();
    loop {
        let last = *stopping.borrow();
        let batch = one_batch(&pool, &relay, &consumers, &mut left_out, &mut log);
        let full = match tokio::time::timeout(BATCH_LIMIT, batch).await {
            Ok(Ok(copied)) => copied >= BATCH as usize,
            Ok(Err(error)) => {
                if let Some(repeats) = log.speak("batch", std::time::Instant::now()) {
                    warn!(repeats, "dead letters were not copied, trying again: {error}");
                }
                false
            }
            Err(_) => {
                if let Some(repeats) = log.speak("slow", std::time::Instant::now()) {
                    warn!(
                        repeats,
                        "dead letters were not copied in time, trying again: is a broker reachable?"
                    );
                }
                false
            }
        };
        if last {
            break;
        }
        if !full {
            tokio::select! {
                () = parked.notified() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
                _ = stopping.wait_for(|stop| *stop) => {}
            }
        }
    }
}

async fn one_batch<DB: Store>(
    pool: &Pool<DB>,
    relay: &Relay,
    consumers: &[ConsumerId],
    left_out: &mut BTreeSet<i64>,
    log: &mut Limiter,
) -> Result<usize, String> {
    let taken = dead_letters::Relay::take(pool, consumers, BATCH).await.map_err(|error| error.to_string())?;
    let mut copied = Vec::new();
    for letter in &taken.letters {
        let Some(topic) = letter.topic.as_deref().filter(|_| !left_out.contains(&letter.id)) else {
            continue;
        };
        let added = headers(letter);
        let copy = Copy {
            topic,
            key: letter.message_key.as_deref(),
            payload: letter.payload.as_deref(),
            headers: &letter.headers,
            added: &added,
        };
        match relay.copy(&copy).await {
            Ok(()) => copied.push(letter.id),
            Err(error @ (RelayError::NoTopic(_) | RelayError::TooLarge(_))) => {
                left_out.insert(letter.id);
                if let Some(repeats) = log.speak(&error.to_string(), std::time::Instant::now()) {
                    warn!(letter = letter.id, repeats, "a dead letter was not copied: {error}");
                }
            }
            Err(error) => {
                taken.done(&copied).await.map_err(|error| error.to_string())?;
                return Err(error.to_string());
            }
        }
    }
    let count = copied.len();
    taken.done(&copied).await.map_err(|error| error.to_string())?;
    Ok(count)
}

/// What is told beside the record's own headers.
fn headers(letter: &DeadLetter) -> Vec<(&'static str, String)> {
    let mut headers = vec![
        ("handstamp_dead_letter", letter.id.to_string()),
        ("handstamp_consumer", letter.consumer.clone()),
        ("handstamp_reason", letter.reason.clone()),
        ("handstamp_error", letter.error.clone()),
        ("handstamp_attempts", letter.attempts.to_string()),
    ];
    headers.extend(letter.topic.clone().map(|topic| ("handstamp_topic", topic)));
    headers.extend(letter.partition.map(|partition| ("handstamp_partition", partition.to_string())));
    headers.extend(letter.offset.map(|offset| ("handstamp_offset", offset.to_string())));
    headers
}
