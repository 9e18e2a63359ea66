use super::{Inbox, Store};

/// What a handler can take as `&mut`: a way to write inside its inbox transaction.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a connection that an idempotent handler can write through",
    label = "expected `PgConnection`, `SqliteConnection`, `Inbox<…>` or, in a plain `fn`, `Effects`",
    note = "effects commit together with the message's id, so a handler is given the connection that holds \
            its inbox transaction; a pool would hand out another one"
)]
pub trait Access: Send {
    /// The database it writes to.
    type Database: Store;

    /// Whether it only records what is written once the handler has returned.
    #[doc(hidden)]
    const RECORDS: bool = false;

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
