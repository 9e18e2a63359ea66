use std::collections::HashSet;
use std::time::Duration;

use sqlx::{Sqlite, SqliteConnection};
use sqlx_core::sql_str::{AssertSqlSafe, SqlSafeStr};
use sqlx_core::transaction::TransactionManager;
use uuid::Uuid;

use crate::flow::{ClaimedRow, Found, NextOffset};
use crate::inbox::claim::{Broken, Claim, Claimant, Claimed, Guard, StampStore, Tables};
use crate::inbox::consumers::ConsumerId;
use crate::inbox::progress::{TrackedPartition, Tracking};

/// A savepoint whose name nobody else uses: it is gone after any commit or rollback of its transaction.
#[derive(Debug)]
pub struct Savepoint(String);

impl Default for Savepoint {
    fn default() -> Self {
        Self(format!("handstamp_{}", Uuid::now_v7().simple()))
    }
}

impl StampStore for Sqlite {
    type Mark = Savepoint;
    type Acquaintance = ();

    const TABLES: Tables = Tables { inbox: "handstamp_inbox", dead_letters: "handstamp_dead_letters" };
    const WRITERS: usize = 1;

    // There is no link to fail; what takes long is the pool's `busy_timeout`.
    const BEGIN_LIMIT: Duration = Duration::from_mins(1);
    const STATEMENT_LIMIT: Duration = Duration::from_mins(1);

    /// IMMEDIATE: a deferred transaction that upgrades to a write fails at once when another has written
    /// since, and no busy timeout helps.
    async fn begin(
        connection: &mut SqliteConnection,
        (): &mut (),
        mark: &mut Savepoint,
        _: Duration,
    ) -> sqlx::Result<()> {
        let begin = AssertSqlSafe(format!("BEGIN IMMEDIATE; SAVEPOINT {}", mark.0)).into_sql_str();
        <Sqlite as sqlx::Database>::TransactionManager::begin(connection, Some(begin)).await
    }

    async fn claim(
        connection: &mut SqliteConnection,
        _: &mut Savepoint,
        claimant: &Claimant<'_>,
    ) -> sqlx::Result<Claim> {
        let partition = claimant.partition;
        let (consumer, next, passed): (Option<i16>, Option<i64>, Option<i64>) = sqlx::query_as(TRACKED)
            .bind(claimant.consumer)
            .bind(claimant.definition)
            .bind(partition.map(|partition| &*partition.topic))
            .bind(partition.map(|partition| partition.partition))
            .bind(partition.map(|partition| &*partition.cluster))
            .bind(partition.map(|partition| partition.topic_id))
            .bind(partition.map(|partition| partition.incarnation))
            .fetch_one(&mut *connection)
            .await?;
        let row = next.zip(passed);
        let row = row.map(|(next, passed)| ClaimedRow {
            next: NextOffset(next),
            passed: NextOffset(passed),
            // Nothing is dealt with out of turn.
            forgot: false,
        });
        let consumer = consumer.map(ConsumerId);
        let Some(id) = consumer else { return Ok(Claim { consumer, found: Vec::new(), row }) };
        let (mut found, mut new) = (Vec::new(), HashSet::new());
        for Claimed { key, offset } in claimant.messages {
            let parked = match (partition, offset) {
                (Some(partition), Some(offset)) if Some(*offset) < passed => {
                    is_parked(connection, id, partition, *offset).await?
                }
                _ => false,
            };
            if let Some(key) = key.filter(|_| !parked)
                && stamp(connection, id, key).await?
            {
                new.insert(key);
            }
            found.push(Found { stamped: false, parked, ahead: false });
        }
        for (found, asked) in found.iter_mut().zip(claimant.messages) {
            found.stamped = asked.key.is_some_and(|key| new.contains(key));
        }
        Ok(Claim { consumer, found, row })
    }

    /// SQLite rolls back by itself, too: a full disk, `ON CONFLICT ROLLBACK`. What the handler has committed
    /// is told by its key.
    async fn was_ended(
        connection: &mut SqliteConnection,
        mark: &Savepoint,
        consumer: ConsumerId,
        key: &[u8],
    ) -> sqlx::Result<bool> {
        if is_open(connection, mark).await? {
            return Ok(false);
        }
        sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM handstamp_inbox WHERE consumer = ? AND key = ?)")
            .bind(consumer.0)
            .bind(key)
            .fetch_one(connection)
            .await
    }

    async fn unclaim(
        connection: &mut SqliteConnection,
        consumer: ConsumerId,
        keys: &[&[u8]],
    ) -> sqlx::Result<()> {
        for key in keys {
            sqlx::query("DELETE FROM handstamp_inbox WHERE consumer = ? AND key = ?")
                .bind(consumer.0)
                .bind(*key)
                .execute(&mut *connection)
                .await?;
        }
        Ok(())
    }

    async fn guard(
        connection: &mut SqliteConnection,
        mark: &Savepoint,
        guard: &Guard<'_>,
    ) -> sqlx::Result<bool> {
        // First, so that outside the claim's transaction nothing is written.
        if !is_open(connection, mark).await? {
            return Ok(false);
        }
        let Some(Tracking { partition, watermark, acknowledged, .. }) = guard.tracking else {
            return Ok(true);
        };
        let updated = sqlx::query(
            "UPDATE handstamp_progress
             SET next = MAX(next, ?1), passed = MAX(passed, ?1), updated_at = unixepoch()
             WHERE consumer = ?2 AND topic = ?3 AND partition = ?4 AND cluster = ?5 AND topic_id = ?6
               AND incarnation = ?7 AND next >= ?8 AND passed <= ?9",
        )
        .bind(watermark)
        .bind(guard.consumer.0)
        .bind(&*partition.topic)
        .bind(partition.partition)
        .bind(&*partition.cluster)
        .bind(partition.topic_id)
        .bind(partition.incarnation)
        .bind(acknowledged)
        .bind(guard.ceiling)
        .execute(connection)
        .await?;
        Ok(updated.rows_affected() == 1)
    }

    async fn diagnose(
        connection: &mut SqliteConnection,
        mark: &Savepoint,
        guard: &Guard<'_>,
    ) -> sqlx::Result<Broken> {
        let (true, Some(Tracking { partition, acknowledged, .. })) =
            (is_open(connection, mark).await?, guard.tracking)
        else {
            return Ok(Broken::Ended { committed: None });
        };
        let stored: Option<(i64,)> = sqlx::query_as(
            "SELECT next FROM handstamp_progress
             WHERE consumer = ? AND topic = ? AND partition = ? AND cluster = ? AND topic_id = ?
               AND incarnation = ?",
        )
        .bind(guard.consumer.0)
        .bind(&*partition.topic)
        .bind(partition.partition)
        .bind(&*partition.cluster)
        .bind(partition.topic_id)
        .bind(partition.incarnation)
        .fetch_optional(connection)
        .await?;
        Ok(match stored {
            None => Broken::Superseded,
            Some((stored,)) if stored < *acknowledged => Broken::WentBack { stored },
            Some(_) => Broken::Overtaken,
        })
    }
}

/// Releases the savepoint and sets it again; `false` if it was gone, and its transaction with it.
async fn is_open(connection: &mut SqliteConnection, mark: &Savepoint) -> sqlx::Result<bool> {
    let renew = AssertSqlSafe(format!("RELEASE {0}; SAVEPOINT {0}", mark.0));
    match sqlx::raw_sql(renew).execute(connection).await {
        Ok(_) => Ok(true),
        // SQLITE_ERROR, "no such savepoint": the statement has no other way to be wrong.
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("1") => Ok(false),
        Err(error) => Err(error),
    }
}

async fn is_parked(
    connection: &mut SqliteConnection,
    consumer: ConsumerId,
    partition: &TrackedPartition,
    offset: i64,
) -> sqlx::Result<bool> {
    sqlx::query_scalar(
        r#"SELECT EXISTS (SELECT 1 FROM handstamp_dead_letters
                          WHERE consumer = ? AND topic = ? AND partition = ? AND cluster = ? AND topic_id = ?
                            AND "offset" = ?)"#,
    )
    .bind(consumer.0)
    .bind(&*partition.topic)
    .bind(partition.partition)
    .bind(&*partition.cluster)
    .bind(partition.topic_id)
    .bind(offset)
    .fetch_one(connection)
    .await
}

async fn stamp(connection: &mut SqliteConnection, consumer: ConsumerId, key: &[u8]) -> sqlx::Result<bool> {
    let inserted = sqlx::query(
        "INSERT INTO handstamp_inbox (at, consumer, key) VALUES (unixepoch() - 1577836800, ?, ?)
         ON CONFLICT DO NOTHING",
    )
    .bind(consumer.0)
    .bind(key)
    .execute(connection)
    .await?;
    Ok(inserted.rows_affected() == 1)
}

const TRACKED: &str = "
WITH consumer AS (
    SELECT id FROM handstamp_consumers WHERE name = ?1 AND key_definition = ?2
), tracked AS (
    SELECT next, passed FROM handstamp_progress
    WHERE consumer = (SELECT id FROM consumer) AND topic = ?3 AND partition = ?4 AND cluster = ?5
      AND topic_id = ?6 AND incarnation = ?7
)
SELECT (SELECT id FROM consumer), (SELECT next FROM tracked), (SELECT passed FROM tracked)";
