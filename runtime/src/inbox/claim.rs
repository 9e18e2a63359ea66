use std::time::Duration;

use sqlx::Database;

use super::consumers::ConsumerId;
use super::progress::{TrackedPartition, Tracking};
use crate::flow::{ClaimedRow, Found, Offsets};

/// Messages of one partition as they ask to be claimed.
#[derive(Clone, Copy, Debug)]
pub struct Claimant<'a> {
    /// The consumer's name.
    pub consumer: &'a str,
    /// Its key definition. Part of the lookup, so that a changed one can never claim.
    pub definition: &'a str,
    /// The partition, if progress is tracked.
    pub partition: Option<&'a TrackedPartition>,
    /// What has to stand in its row above `next`.
    pub relied: Option<&'a Offsets>,
    /// The messages.
    pub messages: &'a [Claimed<'a>],
}

/// One of them.
#[derive(Clone, Copy, Debug)]
pub struct Claimed<'a> {
    /// The stored form of the key; `None` to be judged without claiming.
    pub key: Option<&'a [u8]>,
    /// Where it stands in the partition.
    pub offset: Option<i64>,
}

/// What the database answered to a [`Claimant`].
#[derive(Clone, Debug)]
pub struct Claim {
    /// `None` if no consumer of that name and key definition is registered.
    pub consumer: Option<ConsumerId>,
    /// One for each message, in their order.
    pub found: Vec<Found>,
    /// The partition's row, where identity and incarnation match.
    pub row: Option<ClaimedRow>,
}

/// What must hold just before COMMIT.
#[derive(Clone, Copy, Debug)]
pub struct Guard<'a> {
    /// The consumer that claimed.
    pub consumer: ConsumerId,
    /// The progress to write, if it is tracked.
    pub tracking: Option<&'a Tracking>,
    /// `passed` must not be above it: the lowest offset of the messages that are applied or parked now. Above
    /// it, another member has dealt with one of them since it was claimed.
    pub ceiling: i64,
    /// The offsets of the messages that are applied now, for the same above `passed`.
    pub applied: &'a [i64],
}

/// Why a guard did not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The claim's transaction is over.
    Ended {
        /// Whether it was committed, where the database can tell.
        committed: Option<bool>,
    },
    /// The stored progress is lower than what was acknowledged.
    WentBack {
        /// What is stored.
        stored: i64,
    },
    /// What was committed above the stored progress is not there.
    Forgot {
        /// What is stored.
        stored: i64,
    },
    /// The progress row is gone or belongs to another incarnation.
    Superseded,
    /// Another member has dealt with the message.
    Overtaken,
}

/// What the tables of a database are called, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tables {
    /// The remembered keys.
    pub inbox: &'static str,
    /// The messages that were given up.
    pub dead_letters: &'static str,
}

/// The statements of one inbox transaction, in the order they are run.
pub trait StampStore: Database {
    /// What tells a transaction from any later one on its connection.
    type Mark: Default + Send + Sync + std::fmt::Debug;

    /// What is learnt of a connection from one transaction to the next.
    type Acquaintance: Default + Send + Sync + std::fmt::Debug;

    /// What the tables are called, for people.
    const TABLES: Tables;
    /// How many transactions can write at a time.
    const WRITERS: usize;

    /// How long BEGIN may take; then the connection is thrown away.
    const BEGIN_LIMIT: Duration;
    /// The same for the other statements of ours. Above every limit of the server's own, so that it
    /// fires only when no answer comes at all.
    const STATEMENT_LIMIT: Duration;

    /// Opens a transaction in which a handler may work for `limit`.
    fn begin(
        connection: &mut Self::Connection,
        acquaintance: &mut Self::Acquaintance,
        mark: &mut Self::Mark,
        limit: Duration,
    ) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// Claims the keys in one order that every transaction keeps, waiting for any other that has claimed one.
    fn claim(
        connection: &mut Self::Connection,
        mark: &mut Self::Mark,
        claimant: &Claimant<'_>,
    ) -> impl Future<Output = sqlx::Result<Claim>> + Send;

    /// Whether the transaction that claimed `key` was ended by its handler. One that the database has aborted
    /// or rolled back by itself was not; it may be rolled back by this.
    fn was_ended(
        connection: &mut Self::Connection,
        mark: &Self::Mark,
        consumer: ConsumerId,
        key: &[u8],
    ) -> impl Future<Output = sqlx::Result<bool>> + Send;

    /// Gives back keys that this transaction claimed.
    fn unclaim(
        connection: &mut Self::Connection,
        consumer: ConsumerId,
        keys: &[&[u8]],
    ) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// Writes the progress if everything holds; otherwise writes nothing and returns `false`.
    fn guard(
        connection: &mut Self::Connection,
        mark: &Self::Mark,
        guard: &Guard<'_>,
    ) -> impl Future<Output = sqlx::Result<bool>> + Send;

    /// Finds out why the guard did not hold.
    fn diagnose(
        connection: &mut Self::Connection,
        mark: &Self::Mark,
        guard: &Guard<'_>,
    ) -> impl Future<Output = sqlx::Result<Broken>> + Send;
}
