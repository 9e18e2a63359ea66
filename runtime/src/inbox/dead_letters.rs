//! Messages that were given up, kept byte for byte in the transaction that moves the progress past them.

use bytes::Bytes;
use sha2::{Digest, Sha256};
use sqlx::{Database, Pool};

use super::Store;
use super::consumers::ConsumerId;
use super::progress::TrackedPartition;
use super::transaction::{HOUSEKEEPING, Transaction, acquire, within};
use crate::failure::{Failure, FailureKind};
use crate::message::{Headers, Message};

/// Why a message was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// It has no usable key.
    Key,
    /// An argument of the handler cannot be read from it.
    Decode,
    /// The handler rejected it.
    Rejected,
    /// The handler failed as often as it may.
    Failed,
    /// It has no payload, and `on_tombstone = park`.
    Tombstone,
    /// The handler ended its transaction while running it.
    TransactionEnded,
}

impl Reason {
    /// As it is stored.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Decode => "decode",
            Self::Rejected => "rejected",
            Self::Failed => "failed",
            Self::Tombstone => "tombstone",
            Self::TransactionEnded => "transaction_ended_by_handler",
        }
    }
}

/// Where a message that has no tracked position came from.
pub const APPLIED_BY_HAND: &str = "apply";

/// A message to be given up.
#[derive(Clone, Copy, Debug)]
pub struct NewLetter<'a> {
    /// By whom.
    pub consumer: ConsumerId,
    /// Why.
    pub reason: Reason,
    /// What went wrong, fit to be stored.
    pub error: &'a str,
    /// How often it was tried.
    pub attempts: u32,
    /// The message.
    pub message: &'a Message,
    /// The stored form of its key, if it has one.
    pub key: Option<&'a [u8]>,
    /// Its partition and offset. Unique with the consumer, so that a redelivery adds nothing; without
    /// them [`digest`](Self::digest) is.
    pub position: Option<(&'a TrackedPartition, i64)>,
}

impl NewLetter<'_> {
    /// What tells messages without a position apart: payload and key, not the headers, which differ
    /// between deliveries of one webhook.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        let part = |bytes: Option<&[u8]>| bytes.map(Sha256::digest);
        let mut digest = Sha256::new();
        for part in [part(self.message.payload()), part(self.key)] {
            digest.update([u8::from(part.is_some())]);
            digest.update(part.unwrap_or_default());
        }
        digest.finalize().into()
    }
}

/// A stored dead letter.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeadLetter {
    /// Its number.
    pub id: i64,
    /// The consumer's name.
    pub consumer: String,
    /// As [`Reason::as_str`] has it.
    pub reason: String,
    /// What went wrong.
    pub error: String,
    /// How often it was tried.
    pub attempts: i32,
    /// The topic, for messages with a position.
    pub topic: Option<String>,
    /// The partition.
    pub partition: Option<i32>,
    /// The offset.
    pub offset: Option<i64>,
    /// Where it came from, for messages without a position.
    pub source: Option<String>,
    /// The stored form of the idempotency key.
    pub event_key: Option<Bytes>,
    /// The message's own key.
    pub message_key: Option<Bytes>,
    /// The payload; `None` for a tombstone.
    pub payload: Option<Bytes>,
    /// The headers.
    pub headers: Headers,
    /// The record's time in milliseconds since 1970.
    pub timestamp: Option<i64>,
    /// When it was given up, in seconds since 1970.
    pub parked_at: i64,
    /// When it was closed.
    pub closed_at: Option<i64>,
    /// How it was closed.
    pub outcome: Option<String>,
}

/// The newest letters, those of one consumer if named, without the closed ones unless asked for.
///
/// # Errors
/// `Environment`.
pub async fn list<DB: Store>(
    pool: &Pool<DB>,
    consumer: Option<&str>,
    closed: bool,
    limit: u32,
) -> Result<Vec<DeadLetter>, Failure> {
    let mut connection = acquire(pool).await?;
    within(DB::STATEMENT_LIMIT, DB::letters(&mut connection, consumer, closed, limit)).await.map_err(unread)
}

/// One letter.
///
/// # Errors
/// `Configuration` if there is none of that number; `Environment`.
pub async fn show<DB: Store>(pool: &Pool<DB>, id: i64) -> Result<DeadLetter, Failure> {
    let mut connection = acquire(pool).await?;
    let letter = within(DB::STATEMENT_LIMIT, DB::letter(&mut connection, id)).await.map_err(unread)?;
    letter.ok_or_else(|| {
        let text = format!("there is no dead letter {id}; `handstamp dlq list` shows them");
        Failure::new(FailureKind::Configuration, text)
    })
}

/// Letters with a topic that nobody has relayed yet, held against other relays until [`Relay::done`].
#[derive(Debug)]
pub struct Relay<DB: Store> {
    transaction: Transaction<DB>,
    /// The letters, oldest first.
    pub letters: Vec<DeadLetter>,
}

impl<DB: Store> Relay<DB> {
    /// Takes up to `limit` open letters of `consumers` with numbers above `after`. Dropped, it gives them back.
    ///
    /// # Errors
    /// `Environment`.
    pub async fn take(
        pool: &Pool<DB>,
        consumers: &[ConsumerId],
        after: i64,
        limit: u32,
    ) -> Result<Self, Failure> {
        let mut transaction = Transaction::begin(pool, HOUSEKEEPING).await?;
        let take = DB::take_unrelayed(transaction.connection(), consumers, after, limit);
        let letters = within(DB::STATEMENT_LIMIT, take).await.map_err(unread)?;
        Ok(Self { transaction, letters })
    }

    /// Marks those that were relayed; the others are given back.
    ///
    /// # Errors
    /// `Environment` or `Unknown`: they will be relayed again.
    pub async fn done(mut self, relayed: &[i64]) -> Result<(), Failure> {
        let mark = DB::mark_relayed(self.transaction.connection(), relayed);
        within(DB::STATEMENT_LIMIT, mark)
            .await
            .map_err(|error| Failure::environment("marking dead letters as relayed", error))?;
        self.transaction.commit().await
    }
}

fn unread(error: sqlx::Error) -> Failure {
    Failure::environment("reading the dead letters", error)
}

/// The statements about dead letters.
pub trait LetterStore: Database {
    /// Writes one unless it is there.
    fn park(
        connection: &mut Self::Connection,
        letter: &NewLetter<'_>,
    ) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// The newest, by consumer.
    fn letters(
        connection: &mut Self::Connection,
        consumer: Option<&str>,
        closed: bool,
        limit: u32,
    ) -> impl Future<Output = sqlx::Result<Vec<DeadLetter>>> + Send;

    /// One by number.
    fn letter(
        connection: &mut Self::Connection,
        id: i64,
    ) -> impl Future<Output = sqlx::Result<Option<DeadLetter>>> + Send;

    /// The oldest open ones with a topic that are not relayed, locked; those that another relay holds are
    /// left out.
    fn take_unrelayed(
        connection: &mut Self::Connection,
        consumers: &[ConsumerId],
        after: i64,
        limit: u32,
    ) -> impl Future<Output = sqlx::Result<Vec<DeadLetter>>> + Send;

    /// Marks them as relayed.
    fn mark_relayed(
        connection: &mut Self::Connection,
        letters: &[i64],
    ) -> impl Future<Output = sqlx::Result<()>> + Send;
}
