use std::num::NonZeroU32;
use std::time::Duration;

use sqlx::Pool;

use super::Horizon;
use crate::failure::Failure;
use crate::inbox::Store;
use crate::inbox::consumers::ConsumerId;
use crate::inbox::sweep::{Scope, StampedAt};
use crate::inbox::transaction::{Transaction, within};

const BATCH: NonZeroU32 = NonZeroU32::new(10_000).expect("it is above zero");

/// The server ends a statement a second after it, before the client gives up waiting, so that no batch goes
/// on deleting that nobody waits for.
const BATCH_LIMIT: Duration = Duration::from_secs(8);

/// One pass over the inbox that forgets the keys of one consumer, batch by batch.
///
/// Each batch is a transaction of its own. A pass that is given up at any point leaves nothing half done: the
/// next one finds what is left. Two at the same time are harmless, though one waits for the other's batch.
///
/// # Who may call it
///
/// Whoever knows that no message whose key was stamped before the horizon will be delivered again, unless its
/// offset is below what the consumer's progress says was passed; there it is judged a late duplicate. Any
/// other is applied a second time. A message without a tracked position ([`apply`](fn@crate::apply)) has only the
/// window that keeps it from that. [`Horizon`] looks at the clock alone, not at the progress (B4), so nothing
/// in handstamp sweeps yet.
#[derive(Debug)]
pub struct Sweep<DB: Store> {
    pool: Pool<DB>,
    scope: Scope,
    place: DB::Place,
    oldest: Option<StampedAt>,
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// How many keys it deleted. It can be none before the pass is over: a batch also ends after a stretch of
    /// the table in which there was little to delete.
    pub deleted: u64,
    /// Whether the pass is over: the batch found nothing up to the end of the table.
    pub finished: bool,
    /// When the oldest key was stamped that the pass has come by and left. Once it is over, that is the oldest
    /// that the consumer remembers, unless rows were moved meanwhile (`VACUUM FULL` and `CLUSTER`; on SQLite
    /// `VACUUM`).
    pub oldest: Option<StampedAt>,
}

impl<DB: Store> Sweep<DB> {
    /// Begins a pass; nothing is read yet.
    #[must_use]
    pub fn new(pool: &Pool<DB>, consumer: ConsumerId, horizon: Horizon) -> Self {
        let scope = Scope { consumer, horizon: horizon.stamped_at(), limit: BATCH };
        Self { pool: pool.clone(), scope, place: DB::Place::default(), oldest: None }
    }

    /// How many keys a batch deletes at the most, instead of 10,000.
    #[must_use]
    pub fn batches_of(mut self, limit: NonZeroU32) -> Self {
        self.scope.limit = limit;
        self
    }

    /// Deletes the next keys.
    ///
    /// # Errors
    /// `Environment` or `Unknown`; the next call tries the same batch again.
    pub async fn next_batch(&mut self) -> Result<Batch, Failure> {
        let mut transaction = Transaction::begin(&self.pool, BATCH_LIMIT).await?;
        let sweep = DB::sweep(transaction.connection(), &self.scope, &self.place);
        let swept = within(DB::STATEMENT_LIMIT, sweep)
            .await
            .map_err(|error| Failure::environment("sweeping the inbox", error))?;
        transaction.commit().await?;
        self.place = swept.place;
        self.oldest = self.oldest.into_iter().chain(swept.oldest).min();
        Ok(Batch { deleted: swept.deleted, finished: swept.ended && swept.deleted == 0, oldest: self.oldest })
    }
}
