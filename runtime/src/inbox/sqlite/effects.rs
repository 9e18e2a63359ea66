use sqlx::{Sqlite, SqliteConnection};

use crate::failure::Failure;
use crate::inbox::effects::EffectStore;

/// There is no way to the database whose round trips could be saved, so nothing is recorded.
impl EffectStore for Sqlite {
    type Effects = ();

    async fn write(_: &mut SqliteConnection, (): ()) -> Result<(), Failure> {
        Ok(())
    }
}
