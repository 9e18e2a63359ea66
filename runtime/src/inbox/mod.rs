//! The stamp: which keys a consumer has applied, written in the transaction of their effects.

use std::ops::{Deref, DerefMut};

use sqlx::Database;
use sqlx::pool::PoolConnection;

use crate::key::Key;

/// A database that can hold an inbox: everything that differs between them.
pub trait Store: Database {}

#[cfg(feature = "postgres")]
impl Store for sqlx::Postgres {}
#[cfg(feature = "sqlite")]
impl Store for sqlx::Sqlite {}

/// An open inbox transaction, for handlers that need more than its connection. Dereferences to it.
///
/// Only the runtime makes one, so a handler that takes it cannot be called around its inbox.
#[derive(Debug)]
pub struct Inbox<DB: Store> {
    connection: PoolConnection<DB>,
    consumer: &'static str,
    key: Option<Key>,
    attempt: u32,
}

impl<DB: Store> Inbox<DB> {
    /// The message's key.
    #[must_use]
    pub fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }

    /// How often the message has been tried, this time included: 1 the first time.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// `consumer:key`, the same on every redelivery: hand it to services outside the database.
    #[must_use]
    pub fn idempotency_key(&self) -> Option<String> {
        self.key.as_ref().map(|key| format!("{}:{key}", self.consumer))
    }
}

impl<DB: Store> Deref for Inbox<DB> {
    type Target = DB::Connection;

    fn deref(&self) -> &DB::Connection {
        &self.connection
    }
}

impl<DB: Store> DerefMut for Inbox<DB> {
    fn deref_mut(&mut self) -> &mut DB::Connection {
        &mut self.connection
    }
}

/// What a handler can take as `&mut`: a way to write inside its inbox transaction.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a connection that an idempotent handler can write through",
    label = "expected `PgConnection`, `SqliteConnection` or `Inbox<…>`",
    note = "effects commit together with the message's id, so a handler is given the connection that holds \
            its inbox transaction; a pool would hand out another one"
)]
pub trait Access: Send {
    /// The database it writes to.
    type Database: Store;

    /// Borrows it from the open transaction.
    fn of(inbox: &mut Inbox<Self::Database>) -> &mut Self;
}

#[cfg(feature = "postgres")]
impl Access for sqlx::PgConnection {
    type Database = sqlx::Postgres;

    fn of(inbox: &mut Inbox<sqlx::Postgres>) -> &mut Self {
        inbox
    }
}

#[cfg(feature = "sqlite")]
impl Access for sqlx::SqliteConnection {
    type Database = sqlx::Sqlite;

    fn of(inbox: &mut Inbox<sqlx::Sqlite>) -> &mut Self {
        inbox
    }
}

impl<DB: Store> Access for Inbox<DB> {
    type Database = DB;

    fn of(inbox: &mut Inbox<DB>) -> &mut Self {
        inbox
    }
}
