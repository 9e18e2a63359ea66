use std::collections::HashSet;
use std::time::Duration;

use sqlx::{PgConnection, Postgres};
use sqlx_core::sql_str::{AssertSqlSafe, SqlSafeStr};
use sqlx_core::transaction::TransactionManager;

use super::progress::multirange;
use crate::flow::{ClaimedRow, Found, NextOffset};
use crate::inbox::claim::{Broken, Claim, Claimant, Guard, StampStore, Tables};
use crate::inbox::consumers::ConsumerId;
use crate::inbox::progress::Tracking;
use crate::laboratory::mutant;

/// The id of the transaction that claimed, as text; `None` until it has claimed.
#[derive(Debug, Default)]
pub struct Xid(Option<String>);

impl StampStore for Postgres {
    type Mark = Xid;

    const TABLES: Tables = Tables { inbox: "handstamp.inbox", dead_letters: "handstamp.dead_letters" };
    const WRITERS: usize = usize::MAX;

    const BEGIN_LIMIT: Duration = Duration::from_secs(5);
    const STATEMENT_LIMIT: Duration = Duration::from_secs(10);

    async fn begin(connection: &mut PgConnection, _: &mut Xid, limit: Duration) -> sqlx::Result<()> {
        let begin = AssertSqlSafe(begin_sql(limit)).into_sql_str();
        <Postgres as sqlx::Database>::TransactionManager::begin(connection, Some(begin)).await
    }

    async fn claim(
        connection: &mut PgConnection,
        mark: &mut Xid,
        claimant: &Claimant<'_>,
    ) -> sqlx::Result<Claim> {
        let partition = claimant.partition;
        let keys: Vec<_> = claimant.messages.iter().map(|message| message.key).collect();
        let offsets: Vec<_> = claimant.messages.iter().map(|message| message.offset).collect();
        let row: ClaimRow = sqlx::query_as(CLAIM)
            .bind(claimant.consumer)
            .bind(claimant.definition)
            .bind(&keys)
            .bind(&offsets)
            .bind(partition.map(|partition| &*partition.topic))
            .bind(partition.map(|partition| partition.partition))
            .bind(partition.map(|partition| &*partition.cluster))
            .bind(partition.map(|partition| partition.topic_id))
            .bind(partition.map(|partition| partition.incarnation))
            .bind(offsets.iter().flatten().min())
            .bind(claimant.relied.map(multirange))
            .fetch_one(connection)
            .await?;
        let (xid, consumer, stamped, parked, ahead, next, passed, proved) = row;
        *mark = Xid(Some(xid));
        let stamped: HashSet<_> = stamped.into_iter().collect();
        let (parked, ahead): (HashSet<_>, HashSet<_>) =
            (parked.into_iter().collect(), ahead.into_iter().collect());
        let found = claimant.messages.iter().map(|message| Found {
            stamped: message.key.is_some_and(|key| stamped.contains(key)),
            parked: message.offset.is_some_and(|offset| parked.contains(&offset)),
            ahead: message.offset.is_some_and(|offset| ahead.contains(&offset)),
        });
        let row = next.zip(passed);
        let row = row.map(|(next, passed)| ClaimedRow {
            next: NextOffset(next),
            passed: NextOffset(passed),
            forgot: proved == Some(false),
        });
        Ok(Claim { consumer: consumer.map(ConsumerId), found: found.collect(), row })
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
        mutant!(GuardOutsideWhere => {
            let anywhere = GUARD.replace("pg_current_xact_id_if_assigned() =", "'0'::xid8 <");
            let raised = raise(connection, AssertSqlSafe(anywhere), mark, guard, tracking).await?;
            return Ok(raised && is_open(connection, mark).await?);
        });
        raise(connection, GUARD, mark, guard, tracking).await
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

/// Raises the progress by a statement like [`GUARD`]; `false` if its conditions do not hold.
async fn raise(
    connection: &mut PgConnection,
    statement: impl SqlSafeStr,
    mark: &Xid,
    guard: &Guard<'_>,
    Tracking { partition, watermark, acknowledged, ahead }: &Tracking,
) -> sqlx::Result<bool> {
    let updated = sqlx::query(statement)
        .bind(guard.consumer.0)
        .bind(&*partition.topic)
        .bind(partition.partition)
        .bind(&*partition.cluster)
        .bind(partition.topic_id)
        .bind(partition.incarnation)
        .bind(watermark)
        .bind(acknowledged)
        .bind(guard.ceiling)
        .bind(mark.0.as_deref())
        .bind(multirange(&ahead.added))
        .bind(multirange(&ahead.relied))
        .bind(guard.applied)
        .execute(connection)
        .await?;
    Ok(updated.rows_affected() == 1)
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

/// BEGIN and the settings of the transaction, one round trip. They only tighten: what the role has set
/// shorter stays, and `synchronous_commit` is raised to `on`, never lowered from `remote_apply`.
///
/// The handler's own limit fires before any of these.
fn begin_sql(limit: Duration) -> String {
    let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX / 2);
    let statement = at_most("statement_timeout", limit.saturating_add(1_000));
    let lock = at_most("lock_timeout", 5_000);
    let idle = at_most("idle_in_transaction_session_timeout", limit.saturating_add(5_000));
    format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
         SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') \
         WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true), {statement}, {lock}, {idle}"
    )
}

fn at_most(setting: &str, milliseconds: u64) -> String {
    // The largest value that these settings take.
    let milliseconds = milliseconds.min(i32::MAX as u64);
    format!(
        "set_config('{setting}', CASE WHEN current_setting('{setting}')::interval > interval '0' AND \
         current_setting('{setting}')::interval < interval '{milliseconds} ms' THEN \
         current_setting('{setting}') ELSE '{milliseconds}ms' END, true)"
    )
}

/// The claim's transaction, the consumer, the new keys, the parked offsets, those ahead, `next`, `passed`, and whether
/// the row has what is relied on.
type ClaimRow =
    (String, Option<i16>, Vec<Vec<u8>>, Vec<i64>, Vec<i64>, Option<i64>, Option<i64>, Option<bool>);

/// One row whatever happens. Keys are inserted in their order, so that two transactions that claim the same
/// ones wait for each other and do not deadlock. The dead letters are asked only about what was dealt with,
/// below `passed` or ahead of it: the comparison is a one-time filter.
const CLAIM: &str = r#"
WITH consumer AS (
    SELECT id FROM handstamp.consumers WHERE name = $1 AND key_definition = $2
), tracked AS (
    SELECT next, passed, ahead, ahead + int8multirange(int8range(NULL, next)) @> $11::text::int8multirange AS proved
    FROM handstamp.progress
    WHERE consumer = (SELECT id FROM consumer) AND topic = $5 AND partition = $6 AND cluster = $7
      AND topic_id = $8 AND incarnation = $9
), parked AS (
    SELECT "offset" FROM handstamp.dead_letters
    WHERE $10 < (SELECT GREATEST(passed, upper(ahead)) FROM tracked) AND consumer = (SELECT id FROM consumer) AND topic = $5
      AND partition = $6 AND cluster = $7 AND topic_id = $8 AND "offset" = ANY ($4)
      AND ("offset" < (SELECT passed FROM tracked) OR (SELECT ahead FROM tracked) @> "offset")
), ahead AS (
    SELECT asked FROM unnest($4::int8[]) AS asked WHERE (SELECT ahead FROM tracked) @> asked
), stamped AS (
    INSERT INTO handstamp.inbox (at, consumer, key)
    SELECT extract(epoch FROM now() - timestamptz '2020-01-01 00:00:00+00')::int4, consumer.id, asked.key
    FROM consumer, unnest($3::bytea[], $4::int8[]) AS asked (key, "offset")
    WHERE asked.key IS NOT NULL AND NOT EXISTS (SELECT FROM parked WHERE parked."offset" = asked."offset")
    ORDER BY asked.key
    ON CONFLICT DO NOTHING
    RETURNING key
)
SELECT pg_current_xact_id()::text, (SELECT id FROM consumer), ARRAY (SELECT key FROM stamped),
       ARRAY (SELECT "offset" FROM parked), ARRAY (SELECT asked FROM ahead), (SELECT next FROM tracked),
       (SELECT passed FROM tracked), (SELECT proved FROM tracked)"#;

/// All conditions stand in the WHERE, so that outside the claim's transaction it writes nothing. They are about
/// the row alone: of one that another transaction writes meanwhile, the newest state is judged.
const GUARD: &str = "
UPDATE handstamp.progress
SET next = GREATEST(next, $7), passed = GREATEST(passed, $7), updated_at = now(),
    ahead = ahead + $11::text::int8multirange - int8multirange(int8range(NULL, GREATEST(next, $7)))
WHERE consumer = $1 AND topic = $2 AND partition = $3 AND cluster = $4 AND topic_id = $5
  AND incarnation = $6 AND next >= $8 AND passed <= $9
  AND pg_current_xact_id_if_assigned() = $10::text::xid8
  AND ahead + int8multirange(int8range(NULL, next)) @> $12::text::int8multirange
  AND (isempty(ahead) OR NOT EXISTS (SELECT FROM unnest($13::int8[]) AS applied WHERE ahead @> applied))";
