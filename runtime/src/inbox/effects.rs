use std::fmt::Debug;

use sqlx::Database;

use crate::failure::Failure;

/// How what a write-only handler has recorded is written.
pub trait EffectStore: Database {
    /// What it is recorded in.
    type Effects: Default + Debug + Send;

    /// Writes it, in the order in which it was recorded.
    fn write(
        connection: &mut Self::Connection,
        effects: Self::Effects,
    ) -> impl Future<Output = Result<(), Failure>> + Send;
}
