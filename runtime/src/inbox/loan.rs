use std::ops::{Deref, DerefMut};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use tokio::time::Instant;

use super::Store;

/// A connection that was taken out of a pool, when, and what is known of it since.
#[derive(Debug)]
pub struct Loan<DB: Store> {
    connection: PoolConnection<DB>,
    taken: Instant,
    acquaintance: DB::Acquaintance,
}

impl<DB: Store> Loan<DB> {
    pub(super) fn of(connection: PoolConnection<DB>) -> Self {
        Self { connection, taken: Instant::now(), acquaintance: DB::Acquaintance::default() }
    }

    pub(super) fn age(&self) -> Duration {
        self.taken.elapsed()
    }

    pub(super) fn parts(&mut self) -> (&mut DB::Connection, &mut DB::Acquaintance) {
        (&mut self.connection, &mut self.acquaintance)
    }

    pub(super) fn into_inner(self) -> PoolConnection<DB> {
        self.connection
    }
}

impl<DB: Store> Deref for Loan<DB> {
    type Target = PoolConnection<DB>;

    fn deref(&self) -> &PoolConnection<DB> {
        &self.connection
    }
}

impl<DB: Store> DerefMut for Loan<DB> {
    fn deref_mut(&mut self) -> &mut PoolConnection<DB> {
        &mut self.connection
    }
}
