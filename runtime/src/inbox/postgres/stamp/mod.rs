mod claim;
mod guard;
mod settings;

use std::time::Duration;

use sqlx::{PgConnection, Postgres};
use sqlx_core::sql_str::{AssertSqlSafe, SqlSafeStr};
use sqlx_core::transaction::TransactionManager;

use self::settings::Acquaintance;
use super::progress::multirange;
use crate::inbox::claim::{Broken, Claim, Claimant, Guard, StampStore, Tables};
use crate::inbox::consumers::ConsumerId;
use crate::inbox::progress::Tracking;

/// The id of the transaction that claimed, as text; `None` until it has claimed.
#[derive(Debug, Default)]
pub struct Xid(Option<String>);

impl StampStore for Postgres {
    type Mark = Xid;
    type Acquaintance = Acquaintance;

    const TABLES: Tables = Tables { inbox: "handstamp.inbox", dead_letters: "handstamp.dead_letters" };
    const WRITERS: usize = usize::MAX;

    const BEGIN_LIMIT: Duration = Duration::from_secs(5);
    const STATEMENT_LIMIT: Duration = Duration::from_secs(10);

    async fn begin(
        connection: &mut PgConnection,
        acquaintance: &mut Acquaintance,
        _: &mut Xid,
        limit: Duration,
    ) -> sqlx::Result<()> {
        let begin = AssertSqlSafe(acquaintance.begin(connection, limit).await?).into_sql_str();
        <Postgres as sqlx::Database>::TransactionManager::begin(connection, Some(begin)).await
    }

    async fn claim(
        connection: &mut PgConnection,
        mark: &mut Xid,
        claimant: &Claimant<'_>,
    ) -> sqlx::Result<Claim> {
        let (xid, claim) = claim::claim(connection, claimant).await?;
        *mark = Xid(Some(xid));
        Ok(claim)
    }

    async fn was_ended(
        connection: &mut PgConnection,
        mark: &Xid,
        _: ConsumerId,
        _: &[u8],
    ) -> sqlx::Result<bool> {
        match is_open(connection, mark).await {
            Ok(open) => Ok(!open),
            // Some transaction is aborted, or a statement that still ran has failed: outside of it the server
            // tells what has become of the one that claimed.
            Err(sqlx::Error::Database(_)) => {
                sqlx::raw_sql("ROLLBACK").execute(&mut *connection).await?;
                Ok(was_committed(connection, mark).await? == Some(true))
            }
            Err(error) => Err(error),
        }
    }

    async fn unclaim(
        connection: &mut PgConnection,
        consumer: ConsumerId,
        keys: &[&[u8]],
    ) -> sqlx::Result<()> {
        sqlx::query("DELETE FROM handstamp.inbox WHERE consumer = $1 AND key = ANY ($2)")
            .bind(consumer.0)
            .bind(keys)
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn guard(connection: &mut PgConnection, mark: &Xid, guard: &Guard<'_>) -> sqlx::Result<bool> {
        let Some(tracking) = guard.tracking else {
            return is_open(connection, mark).await;
        };
        guard::raise(connection, mark.0.as_deref(), guard, tracking).await
    }

    async fn diagnose(connection: &mut PgConnection, mark: &Xid, guard: &Guard<'_>) -> sqlx::Result<Broken> {
        if !is_open(connection, mark).await? {
            return Ok(Broken::Ended { committed: was_committed(connection, mark).await? });
        }
        let Some(Tracking { partition, acknowledged, ahead, .. }) = guard.tracking else {
            return Ok(Broken::Ended { committed: None });
        };
        let stored: Option<(i64, bool)> = sqlx::query_as(
            "SELECT next, ahead + int8multirange(int8range(NULL, next)) @> $7::text::int8multirange
             FROM handstamp.progress
             WHERE consumer = $1 AND topic = $2 AND partition = $3 AND cluster = $4 AND topic_id = $5
               AND incarnation = $6",
        )
        .bind(guard.consumer.0)
        .bind(&*partition.topic)
        .bind(partition.partition)
        .bind(&*partition.cluster)
        .bind(partition.topic_id)
        .bind(partition.incarnation)
        .bind(multirange(&ahead.relied))
        .fetch_optional(connection)
        .await?;
        Ok(match stored {
            None => Broken::Superseded,
            Some((stored, _)) if stored < *acknowledged => Broken::WentBack { stored },
            Some((stored, false)) => Broken::Forgot { stored },
            Some((_, true)) => Broken::Overtaken,
        })
    }
}

/// Whether the transaction that claimed is the one that is open.
async fn is_open(connection: &mut PgConnection, mark: &Xid) -> sqlx::Result<bool> {
    let current: Option<String> =
        sqlx::query_scalar("SELECT pg_current_xact_id_if_assigned()::text").fetch_one(connection).await?;
    Ok(current == mark.0)
}

/// What has become of it since; `None` if the server does not know any more.
async fn was_committed(connection: &mut PgConnection, mark: &Xid) -> sqlx::Result<Option<bool>> {
    let status: Option<String> = sqlx::query_scalar("SELECT pg_xact_status($1::text::xid8)")
        .bind(mark.0.as_deref())
        .fetch_one(connection)
        .await?;
    Ok(status.map(|status| status == "committed"))
}
