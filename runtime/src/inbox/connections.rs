use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::Pool;
use sqlx::pool::PoolConnection;
use tokio::time::{Instant, timeout};

use super::Store;
use super::loan::Loan;
use super::transaction::acquire;
use crate::failure::Failure;

/// How long a connection is trusted after it was used.
const FRESH: Duration = Duration::from_secs(1);
/// How long a connection is kept from its pool at the most: the pool's `max_lifetime` and hooks see only
/// what comes back.
const KEPT: Duration = Duration::from_secs(10);
const RETURN_LIMIT: Duration = Duration::from_secs(5);

/// Where transactions take their connections from: a pool, with those used a moment ago kept at hand.
///
/// A pool asks a connection whether it is alive when it is taken and again when it is given back: two
/// round trips a message. A kept one is taken as it is; had it died meanwhile, BEGIN would say so, and
/// nothing would have been done.
#[derive(Debug)]
pub struct Connections<DB: Store> {
    pool: Pool<DB>,
    kept: Option<Kept<DB>>,
}

/// The connections at hand, the last used one at the end.
type Kept<DB> = Arc<Mutex<Vec<(Loan<DB>, Instant)>>>;

impl<DB: Store> Clone for Connections<DB> {
    fn clone(&self) -> Self {
        Self { pool: self.pool.clone(), kept: self.kept.clone() }
    }
}

impl<DB: Store> Connections<DB> {
    /// Takes from the pool and gives back at once.
    #[must_use]
    pub fn of(pool: &Pool<DB>) -> Self {
        Self { pool: pool.clone(), kept: None }
    }

    /// Keeps as many as were in use at a time, each until [`Self::release_idle`] finds it unused or its pool
    /// has not seen it for a while.
    #[must_use]
    pub fn keeping(pool: &Pool<DB>) -> Self {
        Self { pool: pool.clone(), kept: Some(Arc::default()) }
    }

    pub(crate) fn pool(&self) -> &Pool<DB> {
        &self.pool
    }

    pub(crate) async fn acquire(&self) -> Result<Loan<DB>, Failure> {
        if let Some(kept) = &self.kept {
            let last = kept.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match last {
                Some((loan, used)) if used.elapsed() < FRESH => return Ok(loan),
                Some((loan, _)) => return_to_pool(loan.into_inner()),
                None => {}
            }
        }
        Ok(Loan::of(acquire(&self.pool).await?))
    }

    /// Takes a sound connection back.
    pub(crate) fn give_back(&self, loan: Loan<DB>) {
        match &self.kept {
            Some(kept) if loan.age() < KEPT => {
                kept.lock().unwrap_or_else(PoisonError::into_inner).push((loan, Instant::now()));
            }
            _ => return_to_pool(loan.into_inner()),
        }
    }

    /// Returns to the pool what has not been used for a while.
    pub fn release_idle(&self) {
        let Some(kept) = &self.kept else { return };
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        // The last used are at the end.
        let idle = kept.iter().take_while(|(_, used)| used.elapsed() >= FRESH).count();
        for (loan, _) in kept.drain(..idle) {
            return_to_pool(loan.into_inner());
        }
    }
}

/// The pool pings the connection first, and has no limit for that: on a half-open link its permit would
/// be gone for good (launchbadge/sqlx#4349).
fn return_to_pool<DB: Store>(mut connection: PoolConnection<DB>) {
    tokio::spawn(async move { timeout(RETURN_LIMIT, connection.return_to_pool()).await });
}
