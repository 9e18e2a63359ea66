//! Why a message was not applied, and what that calls for.

mod class;
mod report;

use std::error::Error;
use std::fmt;

pub(crate) use class::{Class, outcome_is_open};
pub(crate) use report::{report, storable};

/// Any error; what handlers' errors become.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Why a message was not applied. Nothing of it was written, unless the kind says otherwise.
#[derive(Debug)]
pub struct Failure {
    kind: FailureKind,
    error: BoxError,
    breaks_connection: bool,
    uncertain: bool,
}

/// What a [`Failure`] calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// The database or the way to it: the message is not to blame and is retried for ever.
    Environment,
    /// The connection broke while the transaction was committing, so it may be there or not. Run the
    /// message again: the inbox answers.
    Unknown,
    /// The handler returned an error, panicked, took too long, or hid an error of the database: an
    /// attempt, retried, then parked.
    Handler,
    /// The message can never be applied: no usable key.
    Key,
    /// The message can never be applied: an argument of the handler cannot be read from it.
    Decode,
    /// The handler said [`reject`]: parked at once.
    Rejected,
    /// The handler committed or rolled back its inbox transaction. What it wrote may be there, and
    /// running it again could write it twice: the consumer stops.
    TransactionEnded,
    /// The stored progress is lower than what was acknowledged: the database was restored or failed
    /// over to an older state. The partition starts again from what is stored.
    WentBack,
    /// The stored progress belongs to another incarnation of the partition (a reset, another topic id).
    Superseded,
    /// The work was called off before it was committed.
    Cancelled,
    /// Something must be changed before anything can run; the message says what.
    Configuration,
}

impl Failure {
    pub(crate) fn new(kind: FailureKind, error: impl Into<BoxError>) -> Self {
        Self { kind, error: error.into(), breaks_connection: false, uncertain: false }
    }

    /// A failure of the database in a statement of ours: never the message's fault.
    pub(crate) fn environment(step: &'static str, error: sqlx::Error) -> Self {
        Self::at(FailureKind::Environment, step, error)
    }

    pub(crate) fn at(kind: FailureKind, step: &'static str, source: sqlx::Error) -> Self {
        // Unless the server named its reason, an answer was lost and a later one would be taken for it.
        let breaks_connection = Class::of_sqlx(&source).is_none_or(|class| class.breaks_connection);
        Self { kind, error: Box::new(AtStep { step, source }), breaks_connection, uncertain: false }
    }

    /// Whether the connection it was met on is not to be used again.
    pub(crate) fn breaks_connection(&self) -> bool {
        self.breaks_connection
    }

    /// Whether a handler returned it without anything in it that tells whom to blame.
    pub(crate) fn is_uncertain(&self) -> bool {
        self.uncertain
    }

    /// What it calls for.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// Whether delivering the message again can help.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        use FailureKind::{Cancelled, Environment, Handler, Superseded, Unknown, WentBack};
        matches!(self.kind, Environment | Unknown | Handler | WentBack | Superseded | Cancelled)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, f)
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{step}: {source}")]
struct AtStep {
    step: &'static str,
    source: sqlx::Error,
}

/// Makes an error that parks the message at once instead of retrying it.
///
/// ```
/// # fn check(amount: i64) -> Result<(), handstamp::BoxError> {
/// if amount <= 0 {
///     return Err(handstamp::reject("a deposit is positive").into());
/// }
/// # Ok(()) }
/// # assert!(check(0).is_err());
/// ```
pub fn reject(error: impl Into<BoxError>) -> Rejection {
    Rejection(error.into())
}

/// What [`reject`] makes.
#[derive(Debug)]
pub struct Rejection(BoxError);

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Error for Rejection {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}
