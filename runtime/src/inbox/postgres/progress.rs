use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Postgres, Row as _};
use uuid::Uuid;

use crate::flow::Offsets;
use crate::inbox::consumers::ConsumerId;
use crate::inbox::progress::{Listed, Progress, ProgressStore, Save, TrackedPartition};

type Row = (String, i32, String, Uuid, i32, i64, i64, i64);

impl ProgressStore for Postgres {
    async fn progress(
        connection: &mut PgConnection,
        consumer: ConsumerId,
        topic: &str,
    ) -> sqlx::Result<Vec<Progress>> {
        let rows: Vec<Row> = sqlx::query_as(
            "SELECT topic, partition, cluster, topic_id, incarnation, next, passed, floor
             FROM handstamp.progress WHERE consumer = $1 AND topic = $2 ORDER BY partition",
        )
        .bind(consumer.0)
        .bind(topic)
        .fetch_all(connection)
        .await?;
        Ok(rows.into_iter().map(progress).collect())
    }

    async fn create_progress(
        connection: &mut PgConnection,
        consumer: ConsumerId,
        partition: &TrackedPartition,
        next: i64,
    ) -> sqlx::Result<()> {
        sqlx::query(
            "INSERT INTO handstamp.progress (consumer, topic, partition, cluster, topic_id, next)
             VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT DO NOTHING",
        )
        .bind(consumer.0)
        .bind(&*partition.topic)
        .bind(partition.partition)
        .bind(&*partition.cluster)
        .bind(partition.topic_id)
        .bind(next)
        .execute(connection)
        .await?;
        Ok(())
    }

    async fn save_progress(connection: &mut PgConnection, saves: &[Save]) -> sqlx::Result<Vec<bool>> {
        let column = |of: fn(&Save) -> i64| saves.iter().map(of).collect::<Vec<_>>();
        let text = |of: fn(&TrackedPartition) -> &str| {
            saves.iter().map(|save| of(&save.tracking.partition)).collect::<Vec<_>>()
        };
        let number = |of: fn(&TrackedPartition) -> i32| {
            saves.iter().map(|save| of(&save.tracking.partition)).collect::<Vec<_>>()
        };
        let written: Vec<(i64,)> = sqlx::query_as(
            "UPDATE handstamp.progress AS p
             SET next = GREATEST(p.next, w.watermark), passed = GREATEST(p.passed, w.watermark),
                 ahead = p.ahead - int8multirange(int8range(NULL, GREATEST(p.next, w.watermark))),
                 updated_at = now()
             FROM unnest($1::int2[], $2::text[], $3::int4[], $4::text[], $5::uuid[], $6::int4[], $7::int8[],
                         $8::int8[], $9::text[]) WITH ORDINALITY
               AS w (consumer, topic, partition, cluster, topic_id, incarnation, watermark, acknowledged, relied, n)
             WHERE p.consumer = w.consumer AND p.topic = w.topic AND p.partition = w.partition
               AND p.cluster = w.cluster AND p.topic_id = w.topic_id AND p.incarnation = w.incarnation
               AND p.next >= w.acknowledged
               AND p.ahead + int8multirange(int8range(NULL, p.next)) @> w.relied::int8multirange
             RETURNING w.n",
        )
        .bind(saves.iter().map(|save| save.consumer.0).collect::<Vec<_>>())
        .bind(text(|partition| &partition.topic))
        .bind(number(|partition| partition.partition))
        .bind(text(|partition| &partition.cluster))
        .bind(saves.iter().map(|save| save.tracking.partition.topic_id).collect::<Vec<_>>())
        .bind(number(|partition| partition.incarnation))
        .bind(column(|save| save.tracking.watermark))
        .bind(column(|save| save.tracking.acknowledged))
        .bind(saves.iter().map(|save| multirange(&save.tracking.ahead.relied)).collect::<Vec<_>>())
        .fetch_all(connection)
        .await?;
        Ok((1..).take(saves.len()).map(|n| written.contains(&(n,))).collect())
    }

    async fn reset_progress(
        connection: &mut PgConnection,
        consumer: ConsumerId,
        partition: &TrackedPartition,
        next: i64,
    ) -> sqlx::Result<()> {
        sqlx::query(
            "INSERT INTO handstamp.progress AS p (consumer, topic, partition, cluster, topic_id, next, floor)
             VALUES ($1, $2, $3, $4, $5, $6, $6)
             ON CONFLICT (consumer, topic, partition) DO UPDATE
             SET passed = CASE WHEN p.cluster = $4 AND p.topic_id = $5 THEN p.passed ELSE 0 END,
                 ahead = CASE WHEN p.cluster = $4 AND p.topic_id = $5 THEN p.ahead ELSE '{}' END,
                 cluster = $4, topic_id = $5, next = $6, floor = $6, incarnation = p.incarnation + 1,
                 updated_at = now()",
        )
        .bind(consumer.0)
        .bind(&*partition.topic)
        .bind(partition.partition)
        .bind(&*partition.cluster)
        .bind(partition.topic_id)
        .bind(next)
        .execute(connection)
        .await?;
        Ok(())
    }

    async fn all_progress(connection: &mut PgConnection) -> sqlx::Result<Vec<Listed>> {
        let rows = sqlx::query(
            "SELECT c.name, extract(epoch FROM p.updated_at)::int8 AS updated_at, p.topic, p.partition, p.cluster,
                    p.topic_id, p.incarnation, p.next, p.passed, p.floor
             FROM handstamp.progress p JOIN handstamp.consumers c ON c.id = p.consumer
             ORDER BY c.name, p.topic, p.partition",
        )
        .fetch_all(connection)
        .await?;
        rows.iter().map(listed).collect()
    }
}

/// As PostgreSQL writes an `int8multirange`.
pub(super) fn multirange(offsets: &Offsets) -> String {
    let spans = offsets.spans().map(|(first, end)| format!("[{first},{end})"));
    format!("{{{}}}", spans.collect::<Vec<_>>().join(","))
}

fn progress((topic, partition, cluster, topic_id, incarnation, next, passed, floor): Row) -> Progress {
    let partition =
        TrackedPartition { topic: topic.into(), partition, cluster: cluster.into(), topic_id, incarnation };
    Progress { partition, next, passed, floor }
}

fn listed(row: &PgRow) -> sqlx::Result<Listed> {
    let partition = TrackedPartition {
        topic: row.try_get::<String, _>("topic")?.into(),
        partition: row.try_get("partition")?,
        cluster: row.try_get::<String, _>("cluster")?.into(),
        topic_id: row.try_get("topic_id")?,
        incarnation: row.try_get("incarnation")?,
    };
    let (next, passed) = (row.try_get("next")?, row.try_get("passed")?);
    let progress = Progress { partition, next, passed, floor: row.try_get("floor")? };
    Ok(Listed { consumer: row.try_get("name")?, progress, updated_at: row.try_get("updated_at")? })
}
