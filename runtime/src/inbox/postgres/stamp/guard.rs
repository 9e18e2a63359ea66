use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{PgConnection, Postgres};
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
        let anywhere = out_of_turn(sqlx_core::sql_str::AssertSqlSafe(anywhere), xid, guard, tracking);
        let raised = anywhere.execute(&mut *connection).await?.rows_affected() == 1;
        let current: Option<String> =
            sqlx::query_scalar("SELECT pg_current_xact_id_if_assigned()::text").fetch_one(connection).await?;
        return Ok(raised && current.as_deref() == xid);
    });
    let Ahead { relied, added } = &tracking.ahead;
    if relied.is_empty() && added.is_empty() {
        let raised = in_turn(GUARD_IN_TURN, xid, guard, tracking).execute(&mut *connection).await?;
        if raised.rows_affected() == 1 {
            return Ok(true);
        }
    }
    let raised = out_of_turn(GUARD, xid, guard, tracking).execute(connection).await?;
    Ok(raised.rows_affected() == 1)
}

/// A statement with what [`GUARD_IN_TURN`] asks for.
fn in_turn<'a>(
    statement: impl SqlSafeStr,
    xid: Option<&'a str>,
    guard: &Guard<'_>,
    Tracking { partition, watermark, acknowledged, .. }: &'a Tracking,
) -> Query<'a, Postgres, PgArguments> {
    sqlx::query(statement)
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
}

/// A statement with what [`GUARD`] asks for besides.
fn out_of_turn<'a>(
    statement: impl SqlSafeStr,
    xid: Option<&'a str>,
    guard: &'a Guard<'_>,
    tracking: &'a Tracking,
) -> Query<'a, Postgres, PgArguments> {
    let Ahead { relied, added } = &tracking.ahead;
    in_turn(statement, xid, guard, tracking)
        .bind(multirange(added))
        .bind(multirange(relied))
        .bind(guard.applied)
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
