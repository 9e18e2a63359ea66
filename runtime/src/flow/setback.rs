use super::{Disposition, Outcome};

/// What kept a message from being dealt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Setback {
    /// The database or the way to it.
    Environment,
    /// The connection was lost at COMMIT, which may or may not have happened.
    Unknown,
    /// The handler: an error, a panic, too slow, or a hidden error of the database.
    Handler,
    /// The handler says that the message can never be applied.
    Rejected,
    /// The key or an argument cannot be read from it.
    Unreadable,
    /// It was called off.
    Cancelled,
    /// The row is lower than what was acknowledged.
    WentBack,
    /// The row is not ours any more.
    Superseded,
    /// The handler ended the transaction by itself.
    TransactionEnded,
    /// The consumer is not registered.
    Unregistered,
    /// Something must be changed before anything can run.
    Misconfigured,
}

impl From<Setback> for Outcome {
    fn from(setback: Setback) -> Self {
        match setback {
            Setback::Environment => Self::Environment,
            Setback::Unknown => Self::Unknown,
            Setback::Handler => Self::Failed,
            Setback::Rejected | Setback::Unreadable => Self::Rejected,
            Setback::Cancelled => Self::Cancelled,
            Setback::WentBack => Self::WentBack,
            Setback::Superseded => Self::Superseded,
            Setback::TransactionEnded => Self::TransactionEnded,
            Setback::Unregistered | Setback::Misconfigured => Self::Misconfigured,
        }
    }
}

impl Outcome {
    /// That of a job whose messages are all dealt with: the row is written unless all were skipped.
    #[must_use]
    pub fn of(dispositions: &[Disposition]) -> Self {
        let skipped = dispositions.iter().all(|disposition| *disposition == Disposition::Skipped);
        if skipped { Self::Skipped } else { Self::Done }
    }
}
