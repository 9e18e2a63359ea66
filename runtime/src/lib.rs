//! Delivered many times, applied once: idempotent consumers for services that read Kafka and write to SQL.
//!
//! [`#[idempotent]`](idempotent) makes an `async fn` a handler that runs inside its *inbox transaction*: the
//! message's key, everything the handler writes, and the consumer's progress commit together or not at all. A
//! [`Worker`] feeds handlers from Kafka and commits offsets only after the database has; [`apply`] runs the same
//! handler for a message from anywhere else.
//!
//! ```no_run
//! use handstamp::{Json, Kafka, Worker, idempotent};
//! use sqlx::{PgConnection, PgPool};
//!
//! #[derive(serde::Deserialize)]
//! struct Deposit {
//!     account_id: i64,
//!     amount: i64,
//! }
//!
//! #[idempotent(consumer = "wallet-credits", key = header("event_id"))]
//! async fn credit(Json(d): Json<Deposit>, conn: &mut PgConnection) -> sqlx::Result<()> {
//!     sqlx::query("UPDATE accounts SET balance = balance + $1 WHERE id = $2")
//!         .bind(d.amount)
//!         .bind(d.account_id)
//!         .execute(conn)
//!         .await?;
//!     Ok(())
//! }
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let pool = PgPool::connect(&std::env::var("DATABASE_URL")?).await?;
//! handstamp::migrate(&pool).await?;
//! Worker::builder(pool).kafka(Kafka::from_env()?).consume::<credit>("wallet.deposits").run().await?;
//! # Ok(()) }
//! ```
//!
//! # The guarantee
//!
//! Each message whose handler returns `Ok` has its database effects applied exactly once per (consumer, key), for
//! any sequence of process kills, evictions, broker disconnects and database crashes, as long as the database
//! keeps what it acknowledged, the inbox remembers a key for longer than it can be redelivered, and a key names
//! one event. Effects outside the database are at-least-once, with a stable key ([`Inbox::idempotency_key`]).
//!
//! On SQLite one promise is weaker: a statement that fails undoes only itself there, so a handler that hides its
//! error commits the rest.
//!
//! # What becomes of a message
//!
//! | it | happens |
//! |---|---|
//! | is new | the handler runs, and all commits together: [`Disposition::Applied`] |
//! | was applied before | it is skipped, and its offset moves: [`Disposition::Duplicate`] |
//! | has no usable key, cannot be decoded, or the handler says [`reject`] | it is parked at once: a row in the dead letters, and the partition goes on |
//! | fails in the handler: an error, a panic, too slow | it is rolled back and tried again in its place, `attempts` times, then parked |
//! | meets a failing database | it is tried again for ever; that is never an attempt |
//! | has a handler that commits or rolls back by itself | the worker stops and names it: [`WorkerError::TransactionEnded`] |
//!
//! # Three ways to write
//!
//! | handler | how its effects are written | for |
//! |---|---|---|
//! | `async fn(Json<T>, &mut PgConnection)` | statement by statement, many messages to a transaction | anything |
//! | `async fn(Vec<Json<T>>, &mut PgConnection)` | called once for all messages of a transaction | set-based SQL: the fastest |
//! | `fn(Json<T>, &mut Effects)` | recorded, and run on the server in two round trips for all messages | what only writes; PostgreSQL |
//!
//! # Tables
//!
//! [`migrate`] makes them; [`migration_sql`] gives the SQL and the grants to those who run their own migrations. On
//! PostgreSQL they live in the schema `handstamp`, on SQLite their names begin with `handstamp_`. The view
//! `handstamp.processed_messages` is for people. The service itself needs to read and write rows, never to create.
//!
//! # Features
//!
//! | feature | what |
//! |---|---|
//! | `kafka` (default) | [`Worker`], [`Kafka`], [`Publisher`] |
//! | `postgres` (default) | inboxes in PostgreSQL 15 or newer |
//! | `sqlite` | inboxes in SQLite, for tests and small tools |
//! | `cli` | the operator's tool |
#![deny(missing_docs)]

mod apply;
#[cfg(feature = "cli")]
pub mod cli;
mod failure;
#[doc(hidden)]
pub mod flow;
mod handler;
mod inbox;
mod key;
#[cfg(handstamp_laboratory)]
pub mod laboratory;
#[cfg(not(handstamp_laboratory))]
mod laboratory;
mod message;
mod migrate;
mod retention;
#[cfg(feature = "kafka")]
mod source;
#[cfg(feature = "kafka")]
mod worker;

pub use apply::{Disposition, apply, apply_with_state};
pub use failure::{BoxError, Failure, FailureKind, Rejection, reject};
pub use flow::Order;
pub use handler::{Handler, OnOutOfRange, OnTombstone, Options, Outcome, StartAt};
pub use handstamp_macros::idempotent;
pub use inbox::{Access, Inbox, Store};
#[cfg(feature = "postgres")]
pub use inbox::{Effect, EffectArguments, Effects};
pub use key::{Key, KeyError, KeyFunction, KeySource};
#[doc(hidden)]
pub use message::{Argument, Arguments, Needs, Nothing, Provides, Span};
pub use message::{
    EventId, FromMessage, FromRef, Headers, HeadersIter, Json, Message, MessageBuilder, Payload, Position,
    State, Text,
};
pub use migrate::{migrate, migration_sql, require_current};
#[cfg(feature = "kafka")]
pub use source::kafka::{Kafka, KafkaConfigError, PublishError, Publisher, Record};
#[doc(hidden)]
#[cfg(feature = "kafka")]
pub use worker::Serves;
#[cfg(feature = "kafka")]
pub use worker::{Notice, Worker, WorkerBuilder, WorkerError};

/// The README's code compiles.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

/// What generated code names. Not public API.
#[doc(hidden)]
pub mod __private {
    pub use handstamp_macros::beside;

    pub use crate::handler::Takes;
}

/// What the worker, the command line and the tests of handstamp itself use. Not public API.
#[doc(hidden)]
pub mod internal {
    pub use crate::apply::{Consumer, Job, JobDone, JobFailure, Registered, Task};
    pub use crate::inbox::{Connections, consumers, dead_letters, progress, server};

    /// Nothing sweeps by itself yet: a horizon does not look at the progress.
    pub mod retention {
        pub use crate::inbox::sweep::StampedAt;
        pub use crate::retention::{Batch, Horizon, Sweep};
    }
}
