use super::claim::StampStore;
use super::consumers::ConsumerStore;
use super::dead_letters::LetterStore;
use super::progress::ProgressStore;
use crate::migrate::MigrationStore;

/// A database that can hold an inbox: `sqlx::Postgres` or `sqlx::Sqlite`.
///
/// The five traits above it are the whole dialect surface, one noun each.
pub trait Store: StampStore + ConsumerStore + ProgressStore + LetterStore + MigrationStore {}

impl<DB: StampStore + ConsumerStore + ProgressStore + LetterStore + MigrationStore> Store for DB {}
