//! Delivered many times, applied once.

mod apply;
mod failure;
#[doc(hidden)]
pub mod flow;
mod handler;
mod inbox;
mod key;
mod message;
mod migrate;

pub use apply::{Disposition, apply, apply_with_state};
pub use failure::{BoxError, Failure, FailureKind, Rejection, reject};
pub use handler::{Handler, OnOutOfRange, OnTombstone, Options, Outcome, StartAt};
pub use handstamp_macros::idempotent;
pub use inbox::{Access, Inbox, Store};
pub use key::{Key, KeyError, KeyFunction, KeySource};
pub use message::{
    Argument, Arguments, EventId, FromMessage, FromRef, Headers, Json, Message, MessageBuilder, Needs,
    Nothing, Payload, Position, Provides, State, Text,
};
pub use migrate::{migrate, migration_sql, require_current};

/// What generated code names. Not public API.
#[doc(hidden)]
pub mod __private {
    pub use handstamp_macros::beside;

    pub use crate::handler::Takes;
}

/// What the worker, the command line and the tests of handstamp itself use. Not public API.
#[doc(hidden)]
pub mod internal {
    pub use crate::apply::{Consumer, Job, Registered, Task};
    pub use crate::inbox::{consumers, dead_letters, progress};
}
