use sqlx::{Pool, Sqlite};

use crate::failure::Failure;
use crate::inbox::claim::StampStore;
use crate::inbox::server::ServerStore;
use crate::inbox::transaction::{acquire, within};

/// `PRAGMA synchronous`: 2 is FULL.
const FULL: i64 = 2;

impl ServerStore for Sqlite {
    async fn examine(pool: &Pool<Sqlite>) -> Result<Vec<String>, Failure> {
        let mut connection = acquire(pool).await?;
        let synchronous = sqlx::query_scalar("PRAGMA synchronous").fetch_one(&mut *connection);
        let synchronous: i64 = within(Sqlite::STATEMENT_LIMIT, synchronous)
            .await
            .map_err(|error| Failure::environment("reading the database's settings", error))?;
        let warning = "`synchronous` is below FULL: a crash of the machine loses what was acknowledged";
        Ok(if synchronous < FULL { vec![warning.to_owned()] } else { Vec::new() })
    }
}
