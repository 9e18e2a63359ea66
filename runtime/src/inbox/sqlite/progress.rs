use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, Sqlite, SqliteConnection};
use uuid::Uuid;

use crate::inbox::consumers::ConsumerId;
use crate::inbox::progress::{Listed, Progress, ProgressStore, Save, TrackedPartition};

type Row = (String, i32, String, Uuid, i32, i64, i64, i64);

impl ProgressStore for Sqlite {
    async fn progress(
        connection: &mut SqliteConnection,
        consumer: ConsumerId,
        topic: &str,
    ) -> sqlx::Result<Vec<Progress>> {
        let rows: Vec<Row> = sqlx::query_as(
            "SELECT topic, partition, cluster, topic_id, incarnation, next, passed, floor
             FROM handstamp_progress WHERE consumer = ? AND topic = ? ORDER BY partition",
        )
        .bind(consumer.0)
        .bind(topic)
        .fetch_all(connection)
        .await?;
        Ok(rows.into_iter().map(progress).collect())
    }

    async fn create_progress(
        connection: &mut SqliteConnection,
        consumer: ConsumerId,
        partition: &TrackedPartition,
        next: i64,
    ) -> sqlx::Result<()> {
        sqlx::query(
            "INSERT INTO handstamp_progress (consumer, topic, partition, cluster, topic_id, next)
             VALUES (?, ?, ?, ?, ?, ?)
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

    async fn save_progress(connection: &mut SqliteConnection, saves: &[Save]) -> sqlx::Result<Vec<bool>> {
        let mut written = Vec::with_capacity(saves.len());
        for Save { consumer, tracking } in saves {
            let updated = sqlx::query(
                "UPDATE handstamp_progress
                 SET next = MAX(next, ?1), passed = MAX(passed, ?1), updated_at = unixepoch()
                 WHERE consumer = ?2 AND topic = ?3 AND partition = ?4 AND cluster = ?5 AND topic_id = ?6
                   AND incarnation = ?7 AND next >= ?8",
            )
            .bind(tracking.watermark)
            .bind(consumer.0)
            .bind(&*tracking.partition.topic)
            .bind(tracking.partition.partition)
            .bind(&*tracking.partition.cluster)
            .bind(tracking.partition.topic_id)
            .bind(tracking.partition.incarnation)
            .bind(tracking.acknowledged)
            .execute(&mut *connection)
            .await?;
            written.push(updated.rows_affected() == 1);
        }
        Ok(written)
    }

    async fn reset_progress(
        connection: &mut SqliteConnection,
        consumer: ConsumerId,
        partition: &TrackedPartition,
        next: i64,
    ) -> sqlx::Result<()> {
        sqlx::query(
            "INSERT INTO handstamp_progress AS p (consumer, topic, partition, cluster, topic_id, next, floor)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)
             ON CONFLICT (consumer, topic, partition) DO UPDATE
             SET passed = CASE WHEN p.cluster = ?4 AND p.topic_id = ?5 THEN p.passed ELSE 0 END,
                 cluster = ?4, topic_id = ?5, next = ?6, floor = ?6, incarnation = p.incarnation + 1,
                 updated_at = unixepoch()",
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

    async fn all_progress(connection: &mut SqliteConnection) -> sqlx::Result<Vec<Listed>> {
        let rows = sqlx::query(
            "SELECT c.name, p.updated_at, p.topic, p.partition, p.cluster, p.topic_id,
                    p.incarnation, p.next, p.passed, p.floor
             FROM handstamp_progress p JOIN handstamp_consumers c ON c.id = p.consumer
             ORDER BY c.name, p.topic, p.partition",
        )
        .fetch_all(connection)
        .await?;
        rows.iter().map(listed).collect()
    }
}

fn progress((topic, partition, cluster, topic_id, incarnation, next, passed, floor): Row) -> Progress {
    let partition =
        TrackedPartition { topic: topic.into(), partition, cluster: cluster.into(), topic_id, incarnation };
    Progress { partition, next, passed, floor }
}

fn listed(row: &SqliteRow) -> sqlx::Result<Listed> {
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
