use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sqlx::pool::PoolConnection;
use sqlx::{Database, Pool};
use tokio::time::timeout;

use super::transaction::acquire;
use crate::failure::Failure;

/// How long a connection is trusted after it was used.
const FRESH: Duration = Duration::from_secs(1);
const RETURN_LIMIT: Duration = Duration::from_secs(5);

/// Where transactions take their connections from: a pool, with those used a moment ago kept at hand.
///
/// A pool asks a connection whether it is alive when it is taken and again when it is given back: two
/// round trips a message. A kept one is taken as it is; had it died meanwhile, BEGIN would say so, and
/// nothing would have been done.
#[derive(Debug)]
pub struct Connections<DB: Database> {
    pool: Pool<DB>,
    kept: Option<Kept<DB>>,
}

/// The connections at hand, the last used one at the end.
type Kept<DB> = Arc<Mutex<Vec<(PoolConnection<DB>, Instant)>>>;

impl<DB: Database> Clone for Connections<DB> {
    fn clone(&self) -> Self {
        Self { pool: self.pool.clone(), kept: self.kept.clone() }
    }
}

impl<DB: Database> Connections<DB> {
    /// Takes from the pool and gives back at once.
    #[must_use]
    pub fn of(pool: &Pool<DB>) -> Self {
        Self { pool: pool.clone(), kept: None }
    }

    /// Keeps as many as were in use at a time, until [`Self::release_idle`] finds them unused.
    #[must_use]
    pub fn keeping(pool: &Pool<DB>) -> Self {
        Self { pool: pool.clone(), kept: Some(Arc::default()) }
    }

    pub(crate) fn pool(&self) -> &Pool<DB> {
        &self.pool
    }

    pub(crate) async fn acquire(&self) -> Result<PoolConnection<DB>, Failure> {
        if let Some(kept) = &self.kept {
            let last = kept.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match last {
                Some((connection, used)) if used.elapsed() < FRESH => return Ok(connection),
                Some((connection, _)) => return_to_pool(connection),
                None => {}
            }
        }
        acquire(&self.pool).await
    }

    /// Takes a sound connection back.
    pub(crate) fn give_back(&self, connection: PoolConnection<DB>) {
        match &self.kept {
            Some(kept) => {
                kept.lock().unwrap_or_else(PoisonError::into_inner).push((connection, Instant::now()));
            }
            None => return_to_pool(connection),
        }
    }

    /// Returns to the pool what has not been used for a while.
    pub fn release_idle(&self) {
        let Some(kept) = &self.kept else { return };
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        // The last used are at the end.
        let idle = kept.iter().take_while(|(_, used)| used.elapsed() >= FRESH).count();
        for (connection, _) in kept.drain(..idle) {
            return_to_pool(connection);
        }
    }
}

/// The pool pings the connection first, and has no limit for that: on a half-open link its permit would
/// be gone for good (launchbadge/sqlx#4349).
fn return_to_pool<DB: Database>(mut connection: PoolConnection<DB>) {
    tokio::spawn(async move { timeout(RETURN_LIMIT, connection.return_to_pool()).await });
}
