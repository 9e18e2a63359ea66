use sqlx::PgConnection;
use sqlx_core::sql_str::SqlSafeStr;

use super::super::progress::multirange;
use crate::flow::Ahead;
use crate::inbox::claim::Guard;
use crate::inbox::progress::Tracking;
use crate::laboratory::mutant;

/// Raises the progress in the transaction of this id; `false`, and nothing was written, if any condition does not
/// hold.
pub(super) async fn raise(
    connection: &mut PgConnection,
    xid: Option<&str>,
    guard: &Guard<'_>,
    tracking: &Tracking,
) -> sqlx::Result<bool> {
    mutant!(GuardOutsideWhere => {
        let anywhere = GUARD.replace("pg_current_xact_id_if_assigned() =", "'0'::xid8 <");
        let raised = raise_whatever_comes(connection, sqlx_core::sql_str::AssertSqlSafe(anywhere), xid, guard, tracking).await?;
        let current: Option<String> =
            sqlx::query_scalar("SELECT pg_current_xact_id_if_assigned()::text").fetch_one(connection).await?;
        return Ok(raised && current.as_deref() == xid);
    });
    let Ahead { relied, added } = &tracking.ahead;
    if relied.is_empty() && added.is_empty() && raise_in_turn(connection, xid, guard, tracking).await? {
        return Ok(true);
    }
    raise_whatever_comes(connection, GUARD, xid, guard, tracking).await
}

/// Raises the progress where nothing is dealt with out of turn; `false` if that, or another condition, does not
/// hold.
async fn raise_in_turn(
    connection: &mut PgConnection,
    xid: Option<&str>,
    guard: &Guard<'_>,
    Tracking { partition, watermark, acknowledged, .. }: &Tracking,
) -> sqlx::Result<bool> {
    let updated = sqlx::query(GUARD_IN_TURN)
        .bind(guard.consumer.0)
        .bind(&*partition.topic)
        .bind(partition.partition)
        .bind(&*partition.cluster)
        .bind(partition.topic_id)
        .bind(partition.incarnation)
        .bind(watermark)
        .bind(acknowledged)
        .bind(guard.ceiling)
        .bind(xid)
        .execute(connection)
        .await?;
    Ok(updated.rows_affected() == 1)
}

/// Raises the progress by a statement like [`GUARD`]; `false` if its conditions do not hold.
async fn raise_whatever_comes(
    connection: &mut PgConnection,
    statement: impl SqlSafeStr,
    xid: Option<&str>,
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
        .bind(xid)
        .bind(multirange(&ahead.added))
        .bind(multirange(&ahead.relied))
        .bind(guard.applied)
        .execute(connection)
        .await?;
    Ok(updated.rows_affected() == 1)
}

/// What [`GUARD`] does where nothing is ahead, and nothing of this transaction's will be.
const GUARD_IN_TURN: &str = "
UPDATE handstamp.progress
SET next = GREATEST(next, $7), passed = GREATEST(passed, $7), updated_at = now()
WHERE consumer = $1 AND topic = $2 AND partition = $3 AND cluster = $4 AND topic_id = $5
  AND incarnation = $6 AND next >= $8 AND passed <= $9 AND isempty(ahead)
  AND pg_current_xact_id_if_assigned() = $10::text::xid8";

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
