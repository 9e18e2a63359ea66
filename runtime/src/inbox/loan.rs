use std::ops::{Deref, DerefMut};
use std::time::Duration;

use sqlx::Database;
use sqlx::pool::PoolConnection;
use tokio::time::Instant;

/// A connection that was taken out of a pool, and when.
#[derive(Debug)]
pub struct Loan<DB: Database> {
    connection: PoolConnection<DB>,
    taken: Instant,
}

impl<DB: Database> Loan<DB> {
    pub(super) fn of(connection: PoolConnection<DB>) -> Self {
        Self { connection, taken: Instant::now() }
    }

    pub(super) fn age(&self) -> Duration {
        self.taken.elapsed()
    }

    pub(super) fn into_inner(self) -> PoolConnection<DB> {
        self.connection
    }
}

impl<DB: Database> Deref for Loan<DB> {
    type Target = PoolConnection<DB>;

    fn deref(&self) -> &PoolConnection<DB> {
        &self.connection
    }
}

impl<DB: Database> DerefMut for Loan<DB> {
    fn deref_mut(&mut self) -> &mut PoolConnection<DB> {
        &mut self.connection
    }
}
