use std::fmt;

use sqlx::{PgConnection, Postgres};

use crate::inbox::sweep::{Scope, StampedAt, SweepStore, Swept};

/// How many pages of 8 KiB a batch walks at the most, about 65,000 keys: bounded also where there is
/// nothing to delete.
const STRETCH: u32 = 512;

/// The address of a row version; no row has the offset 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tid {
    block: u32,
    offset: u16,
}

impl SweepStore for Postgres {
    type Place = Tid;

    async fn now(connection: &mut PgConnection) -> sqlx::Result<StampedAt> {
        sqlx::query_scalar(
            "SELECT floor(extract(epoch FROM now() - timestamptz '2020-01-01 00:00:00+00'))::int4",
        )
        .fetch_one(connection)
        .await
        .map(StampedAt)
    }

    async fn sweep(connection: &mut PgConnection, scope: &Scope, from: &Tid) -> sqlx::Result<Swept<Tid>> {
        let end = Tid { block: from.block.saturating_add(STRETCH), offset: 0 };
        let (deleted, oldest, cut, blocks): (i64, Option<i32>, Option<String>, i64) = sqlx::query_as(SWEEP)
            .bind(scope.consumer.0)
            .bind(scope.horizon.0)
            .bind(from.to_string())
            .bind(end.to_string())
            .bind(i64::from(scope.limit.get()))
            .fetch_one(connection)
            .await?;
        let cut = cut.as_deref().map(Tid::parse).transpose()?;
        Ok(Swept {
            deleted: deleted.unsigned_abs(),
            oldest: oldest.map(StampedAt),
            place: cut.unwrap_or(end),
            ended: cut.is_none() && blocks <= i64::from(end.block),
        })
    }
}

impl Tid {
    fn parse(text: &str) -> sqlx::Result<Self> {
        let parts = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')?.split_once(','));
        parts
            .and_then(|(block, offset)| {
                Some(Self { block: block.parse().ok()?, offset: offset.parse().ok()? })
            })
            .ok_or_else(|| sqlx::Error::Decode(format!("`{text}` is not a tid").into()))
    }
}

impl fmt::Display for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({},{})", self.block, self.offset)
    }
}

/// There is no index on `at`: a TID range scan walks the heap in its own order. `walked` is read only as far
/// as `expired` asks for rows, so that a stretch cut short by the limit is not read to its end and then again
/// by the next batch; were it read to its end, the result would be the same.
///
/// `deleted` finds its rows by their addresses and looks at them again: they may have changed while it waited
/// for them, and older minor releases of the server would delete the changed ones. `consumer + 0` keeps the
/// primary key out of it, by which it would read all keys of the consumer.
const SWEEP: &str = "
WITH walked AS MATERIALIZED (
    SELECT ctid AS tid, consumer, at, row_number() OVER () AS n
    FROM handstamp.inbox WHERE ctid > $3::text::tid AND ctid < $4::text::tid
), expired AS MATERIALIZED (
    SELECT tid, n FROM walked WHERE consumer = $1 AND at < $2 LIMIT $5
), cut AS (
    SELECT max(tid) AS tid, max(n) AS n FROM expired HAVING count(*) = $5
), kept AS (
    SELECT consumer, at FROM walked LIMIT (SELECT n FROM cut)
), deleted AS (
    DELETE FROM handstamp.inbox
    WHERE ctid = ANY (ARRAY(SELECT tid FROM expired)) AND consumer + 0 = $1 AND at < $2
    RETURNING 1
)
SELECT (SELECT count(*) FROM deleted), (SELECT min(at) FROM kept WHERE consumer = $1 AND at >= $2),
       (SELECT tid::text FROM cut),
       pg_relation_size('handstamp.inbox') / current_setting('block_size')::int8";
