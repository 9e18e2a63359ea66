use std::io;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{Connection, Database, Pool};
use sqlx_core::transaction::TransactionManager;
use tokio::time::timeout;

use super::loan::Loan;
use super::{Connections, Store};
use crate::failure::{Class, Failure, FailureKind, outcome_is_open};
use crate::laboratory::point;

const ROLLBACK_LIMIT: Duration = Duration::from_secs(2);
const COMMIT_LIMIT: Duration = Duration::from_secs(30);

/// How long statements of ours may take in a transaction without a handler.
pub(crate) const HOUSEKEEPING: Duration = Duration::from_secs(30);

/// A transaction that owns its pooled connection, so that it has no lifetime, and closes it if there is
/// any doubt about its state: dropped while open, no answer in time, a failed COMMIT.
#[derive(Debug)]
pub struct Transaction<DB: Store> {
    connection: Loan<DB>,
    mark: DB::Mark,
    home: Connections<DB>,
}

impl<DB: Store> Transaction<DB> {
    /// Takes a connection out of the pool and begins on it.
    pub(crate) async fn begin(pool: &Pool<DB>, limit: Duration) -> Result<Self, Failure> {
        let home = Connections::of(pool);
        Self::begin_on(home.acquire().await?, &home, limit).await
    }

    /// Begins; the connection is closed if no answer comes. A BEGIN that is only dropped would leave it
    /// in a transaction that nobody knows of.
    pub(crate) async fn begin_on(
        mut connection: Loan<DB>,
        home: &Connections<DB>,
        limit: Duration,
    ) -> Result<Self, Failure> {
        point!(BeforeBegin);
        // From here on a drop closes it; only the end of the transaction hands it back.
        connection.close_on_drop();
        let mut this = Self { connection, mark: DB::Mark::default(), home: home.clone() };
        let (raw, acquaintance) = this.connection.parts();
        within(DB::BEGIN_LIMIT, DB::begin(raw, acquaintance, &mut this.mark, limit))
            .await
            .map_err(|error| Failure::environment("opening a transaction", error))?;
        point!(AfterBegin);
        Ok(this)
    }

    pub(crate) fn connection(&mut self) -> &mut DB::Connection {
        &mut self.connection
    }

    pub(crate) fn as_connection(&self) -> &DB::Connection {
        &self.connection
    }

    pub(crate) fn parts(&mut self) -> (&mut DB::Connection, &mut DB::Mark) {
        (&mut self.connection, &mut self.mark)
    }

    /// How many transactions are open, one inside the other: 1 unless somebody forgot to end one.
    pub(crate) async fn depth(&mut self) -> usize {
        let depth = |connection: &_| DB::TransactionManager::get_transaction_depth(connection);
        if depth(&self.connection) > 1 {
            // The rollback of one that was dropped may still be on its way.
            let _ = within(ROLLBACK_LIMIT, self.connection.ping()).await;
        }
        depth(&self.connection)
    }

    /// Commits. `Unknown` where it may or may not have happened.
    pub(crate) async fn commit(mut self) -> Result<(), Failure> {
        point!(BeforeCommit);
        let commit = point!(CommitSent, DB::TransactionManager::commit(&mut self.connection));
        let Err(error) = within(COMMIT_LIMIT, commit).await else {
            point!(AfterCommit);
            self.home.give_back(self.connection);
            return Ok(());
        };
        let kind = match Class::of_sqlx(&error) {
            Some(class) if !outcome_is_open(&error) => class.kind,
            _ => FailureKind::Unknown,
        };
        Err(Failure::at(kind, "committing", error))
    }

    /// Rolls back, or closes the connection where that does not work in time.
    ///
    /// # Errors
    /// That of the ROLLBACK: it tells that the connection was lost before.
    pub(crate) async fn rollback(mut self) -> sqlx::Result<()> {
        within(ROLLBACK_LIMIT, DB::TransactionManager::rollback(&mut self.connection)).await?;
        self.home.give_back(self.connection);
        Ok(())
    }
}

pub(crate) async fn acquire<DB: Database>(pool: &Pool<DB>) -> Result<PoolConnection<DB>, Failure> {
    pool.acquire().await.map_err(|error| Failure::environment("taking a connection out of the pool", error))
}

/// Limits a statement. The caller closes the connection on an error of kind `TimedOut`.
pub(crate) async fn within<T>(
    limit: Duration,
    statement: impl Future<Output = sqlx::Result<T>>,
) -> sqlx::Result<T> {
    timeout(limit, statement).await.unwrap_or_else(|_| {
        let text = format!("the database did not answer within {limit:?}");
        Err(io::Error::new(io::ErrorKind::TimedOut, text).into())
    })
}
