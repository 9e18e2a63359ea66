//! Copies dead letters to their topics, beside everything else.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::Pool;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
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

/// One way through all letters that are not copied yet, oldest first.
#[derive(Debug, Default)]
struct Walk {
    /// The number of the last letter looked at.
    after: i64,
    /// Topics found missing on the way: asking again for each letter would take a second each.
    missing: BTreeSet<String>,
}

/// Runs until told to stop, and then once more.
pub(super) async fn run<DB: Store>(
    pool: Pool<DB>,
    relay: Relay,
    consumers: Vec<ConsumerId>,
    parked: Arc<Notify>,
    mut stopping: watch::Receiver<bool>,
) {
    let mut log = Limiter::default();
    let mut walk = Walk::default();
    loop {
        let last = *stopping.borrow();
        let batch = one_batch(&pool, &relay, &consumers, &mut walk, &mut log);
        let goes_on = match timeout(BATCH_LIMIT, batch).await {
            Ok(Ok(letters)) => letters > 0,
            Ok(Err(error)) => {
                if let Some(repeats) = log.speak("batch", Instant::now()) {
                    warn!(repeats, "dead letters were not copied, trying again: {error}");
                }
                false
            }
            Err(_) => {
                if let Some(repeats) = log.speak("slow", Instant::now()) {
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
        if !goes_on {
            walk = Walk::default();
            tokio::select! {
                () = parked.notified() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
                _ = stopping.wait_for(|stop| *stop) => {}
            }
        }
    }
}

/// Copies the next letters; how many there were. Those that cannot be copied are looked at again on the
/// next walk: the database has them.
async fn one_batch<DB: Store>(
    pool: &Pool<DB>,
    relay: &Relay,
    consumers: &[ConsumerId],
    walk: &mut Walk,
    log: &mut Limiter,
) -> Result<usize, String> {
    let taken = dead_letters::Relay::take(pool, consumers, walk.after, BATCH).await.map_err(text)?;
    let letters = taken.letters.len();
    let mut copied = Vec::new();
    let mut failed = None;
    for letter in &taken.letters {
        let Some(topic) = letter.topic.as_deref().filter(|topic| !walk.missing.contains(*topic)) else {
            walk.after = letter.id;
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
                if let RelayError::NoTopic(_) = error {
                    walk.missing.insert(topic.to_owned());
                }
                if let Some(repeats) = log.speak(&error.to_string(), Instant::now()) {
                    warn!(letter = letter.id, repeats, "a dead letter was not copied: {error}");
                }
            }
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
        walk.after = letter.id;
    }
    taken.done(&copied).await.map_err(text)?;
    failed.map_or(Ok(letters), |error| Err(text(error)))
}

#[expect(clippy::needless_pass_by_value, reason = "made for map_err")]
fn text(error: impl ToString) -> String {
    error.to_string()
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
