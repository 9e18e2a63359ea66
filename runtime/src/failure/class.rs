//! Whom to blame for an error: by SQLSTATE and error kind, never by its text, which is localised.

use std::any::Any;
use std::error::Error;
use std::iter;

use sqlx::error::DatabaseError;

use super::{BoxError, Failure, FailureKind, Rejection};

/// What an error's chain says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) kind: FailureKind,
    /// Whether the connection is not to be used again.
    pub(crate) breaks_connection: bool,
}

impl Class {
    const HANDLER: Self = Self { kind: FailureKind::Handler, breaks_connection: false };
    const REJECTED: Self = Self { kind: FailureKind::Rejected, breaks_connection: false };
    const CONTENTION: Self = Self { kind: FailureKind::Environment, breaks_connection: false };
    const BROKEN: Self = Self { kind: FailureKind::Environment, breaks_connection: true };

    /// The first error in the chain that can be judged; `None` if there is none.
    fn of(error: &(dyn Error + 'static)) -> Option<Self> {
        Self::of_chain(iter::successors(Some(error), |&error| error.source()))
    }

    fn of_chain<'a>(mut chain: impl Iterator<Item = &'a (dyn Error + 'static)>) -> Option<Self> {
        chain.find_map(|error| {
            if error.is::<Rejection>() {
                return Some(Self::REJECTED);
            }
            if let Some(error) = error.downcast_ref::<sqlx::Error>() {
                return Self::of_sqlx(error);
            }
            // What is left to see of an `sqlx::Error` inside an `anyhow::Error` that was boxed.
            if let Some(error) = error.downcast_ref::<Box<dyn DatabaseError>>() {
                return Some(Self::of_database(&**error));
            }
            #[cfg(feature = "postgres")]
            if let Some(error) = error.downcast_ref::<sqlx::postgres::PgDatabaseError>() {
                return Some(Self::of_database(error));
            }
            #[cfg(feature = "sqlite")]
            if let Some(error) = error.downcast_ref::<sqlx::sqlite::SqliteError>() {
                return Some(Self::of_database(error));
            }
            None
        })
    }

    pub(crate) fn of_sqlx(error: &sqlx::Error) -> Option<Self> {
        use sqlx::Error::{BeginFailed, Io, PoolClosed, PoolTimedOut, Tls, WorkerCrashed};
        match error {
            sqlx::Error::Database(error) => Some(Self::of_database(&**error)),
            Io(_) | Tls(_) | PoolTimedOut | PoolClosed | WorkerCrashed | BeginFailed => Some(Self::BROKEN),
            _ => None,
        }
    }

    fn of_database(error: &dyn DatabaseError) -> Self {
        #[cfg(feature = "sqlite")]
        if error.try_downcast_ref::<sqlx::sqlite::SqliteError>().is_some() {
            let code = error.code().and_then(|code| code.parse().ok());
            return code.map_or(Self::HANDLER, Self::of_sqlite_code);
        }
        error.code().map_or(Self::HANDLER, |code| Self::of_sqlstate(&code))
    }

    fn of_sqlstate(code: &str) -> Self {
        match code {
            // Serialization failure, deadlock, lock not available: another transaction was in the way.
            "40001" | "40P01" | "55P03" => Self::CONTENTION,
            // Shutdowns, cannot connect now, idle session timeout; and a read-only server, which a
            // connection kept across a failover may have become.
            "57P01" | "57P02" | "57P03" | "57P04" | "57P05" | "25006" => Self::BROKEN,
            _ => match code.get(..2) {
                // Connection, resources, system.
                Some("08" | "53" | "58") => Self::BROKEN,
                _ => Self::HANDLER,
            },
        }
    }

    #[cfg(feature = "sqlite")]
    fn of_sqlite_code(extended: u32) -> Self {
        match extended & 0xff {
            // BUSY, LOCKED, PROTOCOL (the locking protocol of WAL).
            5 | 6 | 15 => Self::CONTENTION,
            // NOMEM, READONLY, IOERR, FULL, CANTOPEN: SQLite may have rolled back by itself.
            7 | 8 | 10 | 13 | 14 => Self::BROKEN,
            _ => Self::HANDLER,
        }
    }
}

/// Whether an error of COMMIT leaves open what became of the transaction. Where the server answers
/// with an error of the transaction itself (a deferred constraint, a deadlock), it was rolled back.
pub(crate) fn outcome_is_open(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else {
        return true;
    };
    #[cfg(feature = "sqlite")]
    if error.try_downcast_ref::<sqlx::sqlite::SqliteError>().is_some() {
        return Class::of_database(&**error).breaks_connection;
    }
    let code = error.code().unwrap_or_default();
    code.is_empty() || ["08", "57P", "58", "XX"].iter().any(|class| code.starts_with(class))
}

impl Failure {
    /// Classifies what a handler returned, by its concrete type: boxing would hide the database's
    /// error inside an `anyhow::Error`.
    pub(crate) fn from_handler<E: Into<BoxError> + 'static>(error: E) -> Self {
        let unboxed = (&error as &dyn Any).downcast_ref::<anyhow::Error>();
        let unboxed = unboxed.and_then(|error| Class::of_chain(error.chain()));
        let error = error.into();
        let class = unboxed.or_else(|| Class::of(&*error));
        let Class { kind, breaks_connection } = class.unwrap_or(Class::HANDLER);
        Self { kind, error, breaks_connection, uncertain: class.is_none() }
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::fmt;

    use sqlx::error::ErrorKind;

    use super::*;
    use crate::failure::reject;

    /// An error of a server that speaks another language.
    #[derive(Debug)]
    struct Localised(&'static str);

    impl fmt::Display for Localised {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Verklemmung entdeckt")
        }
    }

    impl Error for Localised {}

    impl DatabaseError for Localised {
        fn message(&self) -> &'static str {
            "Verklemmung entdeckt"
        }

        fn code(&self) -> Option<Cow<'_, str>> {
            Some(self.0.into())
        }

        fn as_error(&self) -> &(dyn Error + Send + Sync + 'static) {
            self
        }

        fn as_error_mut(&mut self) -> &mut (dyn Error + Send + Sync + 'static) {
            self
        }

        fn into_error(self: Box<Self>) -> Box<dyn Error + Send + Sync + 'static> {
            self
        }

        fn kind(&self) -> ErrorKind {
            ErrorKind::Other
        }
    }

    fn database(code: &'static str) -> sqlx::Error {
        sqlx::Error::Database(Box::new(Localised(code)))
    }

    #[derive(Debug, thiserror::Error)]
    enum Wrapped {
        #[error("could not credit")]
        Database(#[from] sqlx::Error),
        #[error("not a deposit")]
        Rejected(#[from] Rejection),
    }

    fn io() -> sqlx::Error {
        sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into())
    }

    #[test]
    fn c22_the_environment_is_told_from_the_message_by_sqlstate() {
        let environment = [
            "08000", "08003", "08006", "08P01", "25006", "40001", "40P01", "53100", "53200", "53300",
            "55P03", "57P01", "57P02", "57P03", "57P04", "57P05", "58000", "58030",
        ];
        for code in environment {
            assert_eq!(
                Failure::from_handler(database(code)).kind(),
                FailureKind::Environment,
                "SQLSTATE {code}"
            );
        }
        let message = [
            "22001", "22P02", "23502", "23505", "25P02", "25P03", "42501", "42P01", "57014", "P0001", "XX000",
        ];
        for code in message {
            assert_eq!(Failure::from_handler(database(code)).kind(), FailureKind::Handler, "SQLSTATE {code}");
        }
    }

    #[test]
    fn pool_and_link_errors_are_the_environment() {
        use sqlx::Error::{BeginFailed, PoolClosed, PoolTimedOut, RowNotFound, WorkerCrashed};
        for error in [PoolTimedOut, PoolClosed, WorkerCrashed, BeginFailed, io()] {
            assert_eq!(Failure::from_handler(error).kind(), FailureKind::Environment);
        }
        assert_eq!(Failure::from_handler(RowNotFound).kind(), FailureKind::Handler);
    }

    #[test]
    fn wrapping_hides_no_environment_error() {
        let wrapped = [
            Failure::from_handler(Wrapped::from(database("40P01"))),
            Failure::from_handler(anyhow::Error::from(database("40P01"))),
            Failure::from_handler(anyhow::Error::from(database("40P01")).context("crediting")),
            Failure::from_handler(anyhow::Error::from(Wrapped::from(database("40P01")))),
            Failure::from_handler(BoxError::from(database("40P01"))),
            Failure::from_handler(BoxError::from(anyhow::Error::from(database("40P01")))),
            Failure::from_handler(anyhow::Error::from(io())),
        ];
        for failure in wrapped {
            assert_eq!(failure.kind(), FailureKind::Environment, "{failure:?}");
        }
    }

    #[test]
    fn rejections_are_found_wherever_they_are() {
        let rejections = [
            Failure::from_handler(reject("negative")),
            Failure::from_handler(BoxError::from(reject("negative"))),
            Failure::from_handler(Wrapped::from(reject("negative"))),
            Failure::from_handler(anyhow::Error::from(reject("negative")).context("crediting")),
            Failure::from_handler(reject(database("40P01"))),
        ];
        for failure in rejections {
            assert_eq!(failure.kind(), FailureKind::Rejected, "{failure:?}");
        }
    }

    #[test]
    fn connections_are_dropped_where_they_or_their_server_are_of_no_more_use() {
        for code in ["08006", "57P01", "25006", "53300", "58030"] {
            assert!(Failure::from_handler(database(code)).breaks_connection, "SQLSTATE {code}");
        }
        for code in ["40001", "40P01", "55P03", "23505"] {
            assert!(!Failure::from_handler(database(code)).breaks_connection, "SQLSTATE {code}");
        }
    }

    #[test]
    fn only_errors_that_do_not_name_the_transaction_leave_a_commit_open() {
        for code in ["08006", "57P01", "57P02", "58030", "XX000"] {
            assert!(outcome_is_open(&database(code)), "SQLSTATE {code}");
        }
        assert!(outcome_is_open(&io()));
        for code in ["23505", "23503", "40001", "40P01", "P0001", "57014", "53100"] {
            assert!(!outcome_is_open(&database(code)), "SQLSTATE {code}");
        }
    }

    #[cfg(feature = "sqlite")]
    #[test]
    fn sqlite_codes_are_classified_by_their_primary_code() {
        let kind = |code| Class::of_sqlite_code(code).kind;
        // BUSY, BUSY_SNAPSHOT, LOCKED, IOERR_WRITE, FULL.
        for code in [5, 517, 6, 778, 13] {
            assert_eq!(kind(code), FailureKind::Environment, "code {code}");
        }
        // CONSTRAINT_UNIQUE, CONSTRAINT_FOREIGNKEY, ERROR, INTERRUPT.
        for code in [2067, 787, 1, 9] {
            assert_eq!(kind(code), FailureKind::Handler, "code {code}");
        }
    }
}
