use std::borrow::Cow;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use super::claim::{Broken, Claim, Claimant, Guard};
use super::consumers::ConsumerId;
use super::loan::Loan;
use super::transaction::{Transaction, within};
use super::{Connections, Store};
use crate::failure::{Class, Failure, FailureKind};
use crate::flow::{ClaimedRow, NextOffset, Setback};
use crate::key::Key;
use crate::laboratory::point;

/// How long the question may take whether a failed handler has ended its transaction. A rollback follows that
/// has a limit of its own, and a shutdown may wait for both.
const BLAME_LIMIT: Duration = Duration::from_secs(5);

/// An open inbox transaction, for handlers that need more than its connection. Dereferences to it.
///
/// Only the runtime makes one, so a handler that takes it cannot be called around its inbox.
#[derive(Debug)]
pub struct Inbox<DB: Store> {
    transaction: Transaction<DB>,
    consumer: &'static str,
    /// Of the one message that the handler is called for.
    key: Option<Key>,
    /// Of one of the messages that the handler is called for.
    witness: Option<Key>,
    attempt: u32,
    /// Who has claimed.
    claimed: Option<ConsumerId>,
    /// What the handler has recorded.
    effects: DB::Effects,
}

impl<DB: Store> Inbox<DB> {
    /// The message's key; `None` in a handler that takes many messages at a time.
    #[must_use]
    pub fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }

    /// How often the message has been tried, this time included: 1 the first time.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// `consumer:key`, the same on every redelivery: hand it to services outside the database. `None` as
    /// [`key`](Self::key) is.
    #[must_use]
    pub fn idempotency_key(&self) -> Option<String> {
        self.key.as_ref().map(|key| format!("{}:{key}", self.consumer))
    }

    pub(crate) async fn begin(
        connection: Loan<DB>,
        home: &Connections<DB>,
        consumer: &'static str,
        attempt: u32,
        limit: Duration,
    ) -> Result<Self, Failure> {
        let transaction = Transaction::begin_on(connection, home, limit).await?;
        let effects = DB::Effects::default();
        Ok(Self { transaction, consumer, key: None, witness: None, attempt, claimed: None, effects })
    }

    /// Claims the keys, waiting for other transactions that have claimed any of them.
    pub(crate) async fn claim(&mut self, claimant: &Claimant<'_>) -> Result<Claim, Failure> {
        let (connection, mark) = self.transaction.parts();
        let claim =
            within(DB::STATEMENT_LIMIT, DB::claim(connection, mark, claimant)).await.map_err(claim_failed)?;
        point!(AfterClaim);
        self.claimed = claim.consumer;
        Ok(claim)
    }

    /// Why the row that was claimed with is not the one that the partition was assigned with.
    pub(crate) fn refused(
        &self,
        setback: Setback,
        row: Option<ClaimedRow>,
        acknowledged: NextOffset,
    ) -> Failure {
        let broken = match (setback, row) {
            (Setback::WentBack, Some(row)) if row.next >= acknowledged => {
                Broken::Forgot { stored: row.next.0 }
            }
            (Setback::WentBack, Some(row)) => Broken::WentBack { stored: row.next.0 },
            _ => Broken::Superseded,
        };
        self.broken(broken, acknowledged.0)
    }

    /// The message that the handler is called for next.
    pub(crate) fn turn_to(&mut self, key: Key) {
        (self.key, self.witness) = (Some(key), None);
    }

    /// The handler is called for many messages, of which this key is one.
    pub(crate) fn turn_to_all(&mut self, key: Key) {
        (self.key, self.witness) = (None, Some(key));
    }

    /// What a handler records in that is called next.
    #[cfg(feature = "postgres")]
    pub(crate) fn effects(&mut self) -> &mut DB::Effects {
        &mut self.effects
    }

    /// Writes what was recorded.
    pub(crate) async fn write(&mut self) -> Result<(), Failure> {
        let effects = std::mem::take(&mut self.effects);
        DB::write(self.transaction.connection(), effects).await
    }

    /// What a handler comes to that failed or was stopped. One that ended the transaction before is told apart:
    /// run again, what it committed would pass for a duplicate, and what it wrote afterwards would be there
    /// twice.
    ///
    /// Asked whatever the failure was: its class says what went wrong, not on which connection.
    pub(crate) async fn blame(&mut self, failure: Failure) -> Failure {
        let key = self.key.as_ref().or(self.witness.as_ref());
        let (Some(consumer), Some(key)) = (self.claimed, key.map(Key::stored)) else {
            return failure;
        };
        let (connection, mark) = self.transaction.parts();
        match within(BLAME_LIMIT, DB::was_ended(connection, mark, consumer, &key)).await {
            Ok(true) => self.broken(Broken::Ended { committed: None }, 0),
            // A connection that does not answer is closed by the rollback.
            Ok(false) | Err(_) => failure,
        }
    }

    /// Gives back a key that was claimed, which was worth it all the same: it waited for a twin that may have
    /// been applying it.
    pub(crate) async fn give_back(&mut self, consumer: ConsumerId, keys: &[&[u8]]) -> Result<(), Failure> {
        let unclaim = DB::unclaim(self.transaction.connection(), consumer, keys);
        within(DB::STATEMENT_LIMIT, unclaim)
            .await
            .map_err(|error| Failure::environment("giving keys back", error))
    }

    /// Writes the progress, unless something tells against committing.
    ///
    /// COMMIT alone would not tell: of an aborted transaction it answers ROLLBACK, and sqlx says `Ok`.
    pub(crate) async fn guard(&mut self, guard: &Guard<'_>) -> Result<(), Failure> {
        point!(BeforeGuard);
        if self.transaction.depth().await > 1 {
            return Err(self.forgotten());
        }
        let acknowledged = guard.tracking.map_or(0, |tracking| tracking.acknowledged);
        let (connection, mark) = self.transaction.parts();
        let holds = match within(DB::STATEMENT_LIMIT, DB::guard(connection, mark, guard)).await {
            Ok(holds) => holds,
            Err(error) => return Err(self.guard_failed(error)),
        };
        if holds {
            return Ok(());
        }
        let broken = within(DB::STATEMENT_LIMIT, DB::diagnose(connection, mark, guard))
            .await
            .map_err(|error| Failure::environment("looking for what broke the guard", error))?;
        Err(self.broken(broken, acknowledged))
    }

    pub(crate) fn transaction(&mut self) -> &mut Transaction<DB> {
        &mut self.transaction
    }

    pub(crate) async fn commit(self) -> Result<(), Failure> {
        self.transaction.commit().await
    }

    /// Ends the transaction without its effects. An error of the handler that names no cause is not the
    /// message's fault if the connection turns out to be lost.
    pub(crate) async fn give_up(mut self, failure: Failure) -> Failure {
        let ended = failure.kind() == FailureKind::TransactionEnded;
        if ended || failure.breaks_connection() || self.transaction.depth().await != 1 {
            return failure;
        }
        match self.transaction.rollback().await {
            Err(lost) if failure.is_uncertain() && breaks_connection(&lost) => {
                let text =
                    format!("the connection was lost under the handler, which said: {failure}: {lost}");
                Failure::new(FailureKind::Environment, text)
            }
            _ => failure,
        }
    }

    /// Ends a transaction in which nothing was done.
    pub(crate) async fn abandon(self) {
        // A rollback that fails closes the connection, which rolls back as well.
        let _ = self.transaction.rollback().await;
    }

    fn forgotten(&self) -> Failure {
        let text = format!(
            "the handler of `{}` left a nested transaction open, so that COMMIT would only have released it; \
             commit or roll back what `begin()` gives, and do not `mem::forget` it",
            self.consumer
        );
        Failure::new(FailureKind::Handler, text)
    }

    fn guard_failed(&self, error: sqlx::Error) -> Failure {
        match sqlstate(&error).as_deref() {
            Some("25P02") => {
                let text = format!(
                    "the handler of `{}` hid an error of the database: one of its statements failed, which \
                     aborted the transaction, and it returned Ok; return the error, or run what may fail in \
                     a nested transaction (`conn.begin()`)",
                    self.consumer
                );
                Failure::new(FailureKind::Handler, text)
            }
            Some("25P03") => Failure::at(FailureKind::Handler, "the handler idled too long", error),
            _ => Failure::environment("writing the progress", error),
        }
    }

    fn broken(&self, broken: Broken, acknowledged: i64) -> Failure {
        let consumer = self.consumer;
        match broken {
            Broken::Ended { committed } => {
                let how = match committed {
                    Some(true) => "committed",
                    Some(false) => "rolled back",
                    None => "ended",
                };
                let text = format!(
                    "the handler of `{consumer}` {how} its inbox transaction by itself; what it wrote may be \
                     there, so the message is not run again. Remove COMMIT, ROLLBACK and BEGIN from the \
                     handler (`conn.begin()` gives a nested transaction), look for what it wrote, and start \
                     again"
                );
                Failure::new(FailureKind::TransactionEnded, text)
            }
            Broken::WentBack { stored } => {
                let text = format!(
                    "the database went back in time: the progress of `{consumer}` is {stored}, but \
                     {acknowledged} was committed before; it was restored or failed over to an older state, \
                     and the partition starts again from there"
                );
                Failure::new(FailureKind::WentBack, text)
            }
            Broken::Forgot { stored } => {
                let text = format!(
                    "the database went back in time: messages behind offset {stored} that `{consumer}` had committed \
                     out of turn are not there any more; it was restored or failed over to an older state, and the \
                     partition starts again from {stored}"
                );
                Failure::new(FailureKind::WentBack, text)
            }
            Broken::Superseded => {
                let text = format!(
                    "the progress of `{consumer}` on this partition was reset or removed since it was \
                     assigned; the partition starts again from what is stored"
                );
                Failure::new(FailureKind::Superseded, text)
            }
            Broken::Overtaken => {
                let text = format!(
                    "another member of `{consumer}` dealt with this message while it was run; it is judged \
                     again"
                );
                Failure::new(FailureKind::Environment, text)
            }
        }
    }
}

fn claim_failed(error: sqlx::Error) -> Failure {
    let step = match sqlstate(&error).as_deref() {
        Some("42P01" | "42703" | "3F000") => {
            "the inbox tables are missing or older than this program: run `handstamp migrate`"
        }
        Some("42501") => {
            "the database role lacks a right on the inbox: `handstamp migrate --print` prints the GRANTs it needs"
        }
        _ => "claiming",
    };
    Failure::environment(step, error)
}

fn sqlstate(error: &sqlx::Error) -> Option<Cow<'_, str>> {
    error.as_database_error()?.code()
}

fn breaks_connection(error: &sqlx::Error) -> bool {
    Class::of_sqlx(error).is_some_and(|class| class.breaks_connection)
}

impl<DB: Store> Deref for Inbox<DB> {
    type Target = DB::Connection;

    fn deref(&self) -> &DB::Connection {
        self.transaction.as_connection()
    }
}

impl<DB: Store> DerefMut for Inbox<DB> {
    fn deref_mut(&mut self) -> &mut DB::Connection {
        self.transaction.connection()
    }
}
