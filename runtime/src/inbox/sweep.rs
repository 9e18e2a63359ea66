//! Forgetting old keys: the statements of one batch.

use std::num::NonZeroU32;

use sqlx::Database;

use super::consumers::ConsumerId;

/// When a key was stamped: seconds since 2020-01-01 00:00 UTC, by the clock of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StampedAt(pub i32);

/// What a batch may delete.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// Whose keys.
    pub consumer: ConsumerId,
    /// Those stamped before it, not at it.
    pub horizon: StampedAt,
    /// How many at the most.
    pub limit: NonZeroU32,
}

/// What a batch did.
#[derive(Clone, Debug)]
pub struct Swept<P> {
    /// How many keys it deleted; those that another sweep was faster to delete do not count.
    pub deleted: u64,
    /// The oldest key of the consumer that it came by and left.
    pub oldest: Option<StampedAt>,
    /// Where the next batch goes on.
    pub place: P,
    /// Whether there was nothing behind that place.
    pub ended: bool,
}

/// The statements about forgetting.
pub trait SweepStore: Database {
    /// A place in the order in which rows are stored; the default is before the first.
    type Place: Clone + Default + Send + Sync + std::fmt::Debug;

    /// What the database's clock says.
    fn now(connection: &mut Self::Connection) -> impl Future<Output = sqlx::Result<StampedAt>> + Send;

    /// Walks a bounded stretch of the table from a place on and deletes what is in scope, until the limit is
    /// reached. Rows are visited in the order in which they are stored, so that a pass reads the table once
    /// and two sweeps cannot deadlock; what another sweep is deleting is waited for.
    fn sweep(
        connection: &mut Self::Connection,
        scope: &Scope,
        from: &Self::Place,
    ) -> impl Future<Output = sqlx::Result<Swept<Self::Place>>> + Send;
}
