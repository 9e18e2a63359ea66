use super::claim::StampStore;
use super::consumers::ConsumerStore;
use super::dead_letters::LetterStore;
use super::effects::EffectStore;
use super::progress::ProgressStore;
use super::server::ServerStore;
use super::sweep::SweepStore;
use crate::migrate::MigrationStore;

/// A database that can hold an inbox: `sqlx::Postgres` or `sqlx::Sqlite`.
///
/// The traits above it are the whole dialect surface, one noun each.
pub trait Store:
    StampStore
    + EffectStore
    + ConsumerStore
    + ProgressStore
    + LetterStore
    + MigrationStore
    + ServerStore
    + SweepStore
{
}

impl<
    DB: StampStore
        + EffectStore
        + ConsumerStore
        + ProgressStore
        + LetterStore
        + MigrationStore
        + ServerStore
        + SweepStore,
> Store for DB
{
}
