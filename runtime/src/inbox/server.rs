//! Whether a server can hold the inbox, looked at before anything is run.

use sqlx::{Database, Pool};

use super::Store;
use crate::failure::Failure;

/// Examines the server behind `pool`. What weakens the guarantee without breaking it is returned as
/// sentences for the log.
///
/// # Errors
/// `Configuration` if something must be changed first; `Environment` if it cannot be reached, or only
/// reads at the moment.
pub async fn examine<DB: Store>(pool: &Pool<DB>) -> Result<Vec<String>, Failure> {
    DB::examine(pool).await
}

/// What is asked of a server.
pub trait ServerStore: Database {
    /// As [`examine`].
    fn examine(pool: &Pool<Self>) -> impl Future<Output = Result<Vec<String>, Failure>> + Send;
}
