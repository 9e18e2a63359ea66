use sqlx::{Sqlite, SqliteConnection};

use crate::inbox::sweep::{Scope, StampedAt, SweepStore, Swept};

/// How many rows a batch walks at the most: bounded also where there is nothing to delete, since nobody else
/// writes meanwhile.
const STRETCH: i64 = 65_536;

/// The number of a row; the first has 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rowid(i64);

impl SweepStore for Sqlite {
    type Place = Rowid;

    async fn now(connection: &mut SqliteConnection) -> sqlx::Result<StampedAt> {
        sqlx::query_scalar("SELECT unixepoch() - 1577836800").fetch_one(connection).await.map(StampedAt)
    }

    async fn sweep(
        connection: &mut SqliteConnection,
        scope: &Scope,
        from: &Rowid,
    ) -> sqlx::Result<Swept<Rowid>> {
        let Scope { consumer, horizon, limit } = scope;
        let (walked, end, cut): (i64, Option<i64>, Option<i64>) = sqlx::query_as(STRETCH_AHEAD)
            .bind(from.0)
            .bind(STRETCH)
            .bind(consumer.0)
            .bind(horizon.0)
            .bind(limit.get())
            .fetch_one(&mut *connection)
            .await?;
        let place = cut.or(end).map_or(*from, Rowid);
        // By row numbers, not by the primary key, by which it would read all keys of the consumer.
        let deleted = sqlx::query(
            "DELETE FROM handstamp_inbox NOT INDEXED
             WHERE rowid > ? AND rowid <= ? AND consumer = ? AND at < ?",
        )
        .bind(from.0)
        .bind(place.0)
        .bind(consumer.0)
        .bind(horizon.0)
        .execute(&mut *connection)
        .await?;
        let oldest: Option<i32> = sqlx::query_scalar(
            "SELECT min(at) FROM handstamp_inbox NOT INDEXED WHERE rowid > ? AND rowid <= ? AND consumer = ?",
        )
        .bind(from.0)
        .bind(place.0)
        .bind(consumer.0)
        .fetch_one(connection)
        .await?;
        Ok(Swept {
            deleted: deleted.rows_affected(),
            oldest: oldest.map(StampedAt),
            place,
            ended: cut.is_none() && walked < STRETCH,
        })
    }
}

/// How many rows lie ahead, where they end, and where the limit is reached before.
const STRETCH_AHEAD: &str = "
WITH walked AS MATERIALIZED (
    SELECT rowid AS place, consumer, at FROM handstamp_inbox WHERE rowid > ?1 ORDER BY rowid LIMIT ?2
), expired AS (
    SELECT place FROM walked WHERE consumer = ?3 AND at < ?4 ORDER BY place LIMIT ?5
)
SELECT (SELECT count(*) FROM walked), (SELECT max(place) FROM walked),
       (SELECT max(place) FROM expired HAVING count(*) = ?5)";
