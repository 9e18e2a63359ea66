//! How far each consumer has got in each partition: the database's own copy of the offsets.

use std::sync::Arc;

use sqlx::{Database, Pool};
use uuid::Uuid;

use super::Store;
use super::consumers::{self, ConsumerId};
use super::transaction::{HOUSEKEEPING, Transaction, acquire, within};
use crate::failure::Failure;
use crate::flow::Ahead;

/// A partition as a progress row knows it: a topic made anew under the same name is another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackedPartition {
    /// The topic's name.
    pub topic: Arc<str>,
    /// The partition's number.
    pub partition: i32,
    /// The cluster's id.
    pub cluster: Arc<str>,
    /// The topic's id; all zeros where the broker has none.
    pub topic_id: Uuid,
    /// Raised by every reset, so that what began before it matches nothing.
    pub incarnation: i32,
}

/// What a transaction writes about its partition.
#[derive(Clone, Debug)]
pub struct Tracking {
    /// The partition, as it was assigned.
    pub partition: Arc<TrackedPartition>,
    /// Everything below it is dealt with once this transaction has committed.
    pub watermark: i64,
    /// The highest `next` whose COMMIT was acknowledged since the assignment.
    pub acknowledged: i64,
    /// What is dealt with out of turn. Nothing, where one transaction writes at a time.
    pub ahead: Ahead,
}

/// A progress row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The partition.
    pub partition: TrackedPartition,
    /// Every offset below it is dealt with.
    pub next: i64,
    /// The highest `next` ever reached; never lowered.
    pub passed: i64,
    /// Where a reset said to go on; 0 without one. An offset of Kafka's that is lower does not count.
    pub floor: i64,
}

/// A progress row with whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The consumer's name.
    pub consumer: String,
    /// The row.
    pub progress: Progress,
    /// When it was last written, in seconds since 1970.
    pub updated_at: i64,
}

/// A watermark that moved without a transaction of its own.
#[derive(Clone, Debug)]
pub struct Save {
    /// Whose.
    pub consumer: ConsumerId,
    /// Where, and how far.
    pub tracking: Tracking,
}

/// What became of a [`Save`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saved {
    /// The row says at least the watermark.
    Written,
    /// The row is lower than what was acknowledged, or has lost what is above: the database went back in time.
    WentBack,
    /// The row is gone or belongs to another incarnation.
    Superseded,
}

/// Every partition of `topic` that the consumer has a row for.
///
/// # Errors
/// `Environment`.
pub async fn read<DB: Store>(
    pool: &Pool<DB>,
    consumer: ConsumerId,
    topic: &str,
) -> Result<Vec<Progress>, Failure> {
    let mut connection = acquire(pool).await?;
    within(DB::STATEMENT_LIMIT, DB::progress(&mut connection, consumer, topic))
        .await
        .map_err(|error| Failure::environment("reading the progress", error))
}

/// Makes the row of a partition that has none, and returns the one that is there afterwards; it is never
/// written over. The incarnation of `partition` is not looked at.
///
/// # Errors
/// `Environment`.
pub async fn create<DB: Store>(
    pool: &Pool<DB>,
    consumer: ConsumerId,
    partition: &TrackedPartition,
    next: i64,
) -> Result<Progress, Failure> {
    let failed = |error| Failure::environment("making a progress row", error);
    let mut transaction = Transaction::begin(pool, HOUSEKEEPING).await?;
    let connection = transaction.connection();
    let create = DB::create_progress(connection, consumer, partition, next);
    within(DB::STATEMENT_LIMIT, create).await.map_err(failed)?;
    let rows = within(DB::STATEMENT_LIMIT, DB::progress(connection, consumer, &partition.topic));
    let mut rows = rows.await.map_err(failed)?;
    transaction.commit().await?;
    let found = rows.iter().position(|row| row.partition.partition == partition.partition);
    found.map(|index| rows.swap_remove(index)).ok_or_else(|| failed(sqlx::Error::RowNotFound))
}

/// Writes watermarks under the conditions of the guard, in one transaction; the results are in order.
///
/// # Errors
/// `Environment` or `Unknown`; writing them again is harmless.
pub async fn save<DB: Store>(pool: &Pool<DB>, saves: &[Save]) -> Result<Vec<Saved>, Failure> {
    let failed = |error| Failure::environment("saving the progress", error);
    let mut transaction = Transaction::begin(pool, HOUSEKEEPING).await?;
    let connection = transaction.connection();
    let written = within(DB::STATEMENT_LIMIT, DB::save_progress(connection, saves)).await.map_err(failed)?;
    let mut results = Vec::with_capacity(saves.len());
    for (save, written) in saves.iter().zip(written) {
        results.push(if written {
            Saved::Written
        } else {
            let topic = &save.tracking.partition.topic;
            let rows = within(DB::STATEMENT_LIMIT, DB::progress(connection, save.consumer, topic));
            judge(save, &rows.await.map_err(failed)?)
        });
    }
    transaction.commit().await?;
    Ok(results)
}

fn judge(save: &Save, rows: &[Progress]) -> Saved {
    let wanted = &save.tracking;
    match rows.iter().find(|row| row.partition == *wanted.partition) {
        Some(_) => Saved::WentBack,
        None => Saved::Superseded,
    }
}

/// Sets where a consumer goes on in a partition, whatever Kafka's offset says, making the row if there is
/// none, and raises its incarnation so that running workers notice. `passed` starts anew where cluster or topic id differ.
///
/// # Errors
/// `Configuration` if there is no such consumer; `Environment` or `Unknown`.
pub async fn reset<DB: Store>(
    pool: &Pool<DB>,
    consumer: &str,
    partition: &TrackedPartition,
    next: i64,
) -> Result<(), Failure> {
    let mut transaction = Transaction::begin(pool, HOUSEKEEPING).await?;
    let connection = transaction.connection();
    let row = consumers::find::<DB>(connection, consumer).await?;
    let reset = DB::reset_progress(connection, row.id, partition, next);
    within(DB::STATEMENT_LIMIT, reset)
        .await
        .map_err(|error| Failure::environment("resetting the progress", error))?;
    transaction.commit().await
}

/// Every row of every consumer, by consumer, topic and partition.
///
/// # Errors
/// `Environment`.
pub async fn list<DB: Store>(pool: &Pool<DB>) -> Result<Vec<Listed>, Failure> {
    let mut connection = acquire(pool).await?;
    within(DB::STATEMENT_LIMIT, DB::all_progress(&mut connection))
        .await
        .map_err(|error| Failure::environment("reading the progress", error))
}

/// The statements about progress rows.
pub trait ProgressStore: Database {
    /// The rows of a consumer on a topic, by partition.
    fn progress(
        connection: &mut Self::Connection,
        consumer: ConsumerId,
        topic: &str,
    ) -> impl Future<Output = sqlx::Result<Vec<Progress>>> + Send;

    /// Inserts a row unless there is one.
    fn create_progress(
        connection: &mut Self::Connection,
        consumer: ConsumerId,
        partition: &TrackedPartition,
        next: i64,
    ) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// Writes watermarks; says of each whether its row matched.
    fn save_progress(
        connection: &mut Self::Connection,
        saves: &[Save],
    ) -> impl Future<Output = sqlx::Result<Vec<bool>>> + Send;

    /// Sets a row and its floor, and raises its incarnation.
    fn reset_progress(
        connection: &mut Self::Connection,
        consumer: ConsumerId,
        partition: &TrackedPartition,
        next: i64,
    ) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// All rows, by consumer, topic and partition.
    fn all_progress(
        connection: &mut Self::Connection,
    ) -> impl Future<Output = sqlx::Result<Vec<Listed>>> + Send;
}
