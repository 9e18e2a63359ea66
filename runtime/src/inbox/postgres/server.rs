use sqlx::{PgConnection, Pool, Postgres};

use crate::failure::{Failure, FailureKind};
use crate::inbox::Connections;
use crate::inbox::claim::StampStore;
use crate::inbox::server::ServerStore;
use crate::inbox::transaction::{HOUSEKEEPING, Transaction, acquire, within};

const OLDEST: i32 = 150_000;

impl ServerStore for Postgres {
    async fn examine(pool: &Pool<Postgres>) -> Result<Vec<String>, Failure> {
        let mut connection = acquire(pool).await?;
        let settings = within(Postgres::STATEMENT_LIMIT, settings(&mut connection));
        let (version, encoding, fsync, recovering) =
            settings.await.map_err(|error| Failure::environment("reading the server's settings", error))?;
        drop(connection);
        let refuse = |text: String| Err(Failure::new(FailureKind::Configuration, text));
        if version < OLDEST {
            let major = version / 10_000;
            return refuse(format!("the server is PostgreSQL {major}; handstamp needs 15 or newer"));
        }
        if encoding != "UTF8" {
            let text = "handstamp needs a database that can hold any text: create one with ENCODING 'UTF8'";
            return refuse(format!("the database is encoded in {encoding}; {text}"));
        }
        if recovering {
            let text = "the server is a standby and only reads: give the address of the primary, or start again after a promotion";
            return Err(Failure::new(FailureKind::Environment, text));
        }
        // Two connections are needed to tell.
        if pool.options().get_max_connections() > 1 {
            try_prepared_statements(pool).await?;
        }
        let warning = "fsync is off: a crash of the server's machine loses what was acknowledged";
        Ok(if fsync { Vec::new() } else { vec![warning.to_owned()] })
    }
}

async fn settings(connection: &mut PgConnection) -> sqlx::Result<(i32, String, bool, bool)> {
    sqlx::query_as(
        "SELECT current_setting('server_version_num')::int4, current_setting('server_encoding'),
                current_setting('fsync')::bool, pg_is_in_recovery()",
    )
    .fetch_one(connection)
    .await
}

/// Behind a pooler that does not follow prepared statements, a statement can run under another one's
/// name. Prepares on one connection, holds the backend with another, and runs it again.
async fn try_prepared_statements(pool: &Pool<Postgres>) -> Result<(), Failure> {
    let home = Connections::of(pool);
    let mut first = home.acquire().await?;
    let second = home.acquire().await?;
    let tried = async {
        within(Postgres::STATEMENT_LIMIT, probe(&mut first)).await?;
        let mut second = Transaction::begin_on(second, &home, HOUSEKEEPING).await.map_err(Probe::Begin)?;
        within(Postgres::STATEMENT_LIMIT, probe(second.connection())).await?;
        within(Postgres::STATEMENT_LIMIT, probe(&mut first)).await?;
        second.rollback().await?;
        Ok(())
    };
    let error = match tried.await {
        Ok(()) => return Ok(()),
        Err(Probe::Begin(failure)) => return Err(failure),
        Err(Probe::Statement(error)) => error,
    };
    // Its statement names are not what sqlx takes them for.
    first.close_on_drop();
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    if !matches!(code.as_deref(), Some("26000" | "42P05" | "08P01")) {
        return Err(Failure::environment("trying prepared statements", error));
    }
    let text = format!(
        "the pooler in front of the database does not support prepared statements, so that a wrong statement \
         could be run: use PgBouncer 1.21 or newer with `max_prepared_statements` above 0, or connect to the \
         server itself ({error})"
    );
    Err(Failure::new(FailureKind::Configuration, text))
}

enum Probe {
    Begin(Failure),
    Statement(sqlx::Error),
}

impl From<sqlx::Error> for Probe {
    fn from(error: sqlx::Error) -> Self {
        Self::Statement(error)
    }
}

async fn probe(connection: &mut PgConnection) -> sqlx::Result<i32> {
    sqlx::query_scalar("SELECT pg_backend_pid() + $1").bind(0).fetch_one(connection).await
}
