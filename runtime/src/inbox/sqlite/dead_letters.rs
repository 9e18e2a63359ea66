use bytes::Bytes;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, Sqlite, SqliteConnection};

use crate::inbox::consumers::ConsumerId;
use crate::inbox::dead_letters::{APPLIED_BY_HAND, DeadLetter, LetterStore, NewLetter};
use crate::message::Headers;

impl LetterStore for Sqlite {
    async fn park(connection: &mut SqliteConnection, letter: &NewLetter<'_>) -> sqlx::Result<()> {
        let (partition, offset) = letter.position.unzip();
        let by_hand = partition.is_none().then(|| letter.digest());
        sqlx::query(
            r#"INSERT INTO handstamp_dead_letters
                   (consumer, reason, error, attempts, cluster, topic, topic_id, partition, "offset", source,
                    payload_digest, event_key, message_key, payload, headers, timestamp_ms)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
               ON CONFLICT DO NOTHING"#,
        )
        .bind(letter.consumer.0)
        .bind(letter.reason.as_str())
        .bind(letter.error)
        .bind(i32::try_from(letter.attempts).unwrap_or(i32::MAX))
        .bind(partition.map(|partition| &*partition.cluster))
        .bind(partition.map(|partition| &*partition.topic))
        .bind(partition.map(|partition| partition.topic_id))
        .bind(partition.map(|partition| partition.partition))
        .bind(offset)
        .bind(by_hand.map(|_| APPLIED_BY_HAND))
        .bind(by_hand.as_ref().map(<[u8; 32]>::as_slice))
        .bind(letter.key)
        .bind(letter.message.key())
        .bind(letter.message.payload())
        .bind(letter.message.headers().as_encoded())
        .bind(letter.message.timestamp())
        .execute(connection)
        .await?;
        Ok(())
    }

    async fn letters(
        connection: &mut SqliteConnection,
        consumer: Option<&str>,
        closed: bool,
        limit: u32,
    ) -> sqlx::Result<Vec<DeadLetter>> {
        let rows = sqlx::query(concat!(
            letters!(),
            "WHERE (?1 IS NULL OR c.name = ?1) AND (?2 OR d.closed_at IS NULL)
             ORDER BY d.id DESC LIMIT ?3"
        ))
        .bind(consumer)
        .bind(closed)
        .bind(i64::from(limit))
        .fetch_all(connection)
        .await?;
        rows.iter().map(letter).collect()
    }

    async fn letter(connection: &mut SqliteConnection, id: i64) -> sqlx::Result<Option<DeadLetter>> {
        let row =
            sqlx::query(concat!(letters!(), "WHERE d.id = ?")).bind(id).fetch_optional(connection).await?;
        row.as_ref().map(letter).transpose()
    }

    async fn take_unrelayed(
        connection: &mut SqliteConnection,
        consumers: &[ConsumerId],
        after: i64,
        limit: u32,
    ) -> sqlx::Result<Vec<DeadLetter>> {
        let rows = sqlx::query(concat!(
            letters!(),
            r#"WHERE d.relayed_at IS NULL AND d.closed_at IS NULL AND d."offset" IS NOT NULL
                 AND d.consumer IN (SELECT value FROM json_each(?1)) AND d.id > ?2
               ORDER BY d.id LIMIT ?3"#
        ))
        .bind(json(consumers.iter().map(|consumer| i64::from(consumer.0))))
        .bind(after)
        .bind(i64::from(limit))
        .fetch_all(connection)
        .await?;
        rows.iter().map(letter).collect()
    }

    async fn mark_relayed(connection: &mut SqliteConnection, letters: &[i64]) -> sqlx::Result<()> {
        sqlx::query("UPDATE handstamp_dead_letters SET relayed_at = unixepoch() WHERE id IN (SELECT value FROM json_each(?))")
            .bind(json(letters.iter().copied()))
            .execute(connection)
            .await?;
        Ok(())
    }
}

macro_rules! letters {
    () => {
        r#"SELECT d.id, c.name, d.reason, d.error, d.attempts, d.topic, d.partition, d."offset", d.source,
                  d.event_key, d.message_key, d.payload, d.headers, d.timestamp_ms,
                  d.parked_at, d.closed_at, d.outcome
           FROM handstamp_dead_letters d JOIN handstamp_consumers c ON c.id = d.consumer
           "#
    };
}
use letters;

fn json(numbers: impl Iterator<Item = i64>) -> String {
    numbers.collect::<serde_json::Value>().to_string()
}

fn letter(row: &SqliteRow) -> sqlx::Result<DeadLetter> {
    let bytes = |column| Ok::<_, sqlx::Error>(row.try_get::<Option<Vec<u8>>, _>(column)?.map(Bytes::from));
    Ok(DeadLetter {
        id: row.try_get("id")?,
        consumer: row.try_get("name")?,
        reason: row.try_get("reason")?,
        error: row.try_get("error")?,
        attempts: row.try_get("attempts")?,
        topic: row.try_get("topic")?,
        partition: row.try_get("partition")?,
        offset: row.try_get("offset")?,
        source: row.try_get("source")?,
        event_key: bytes("event_key")?,
        message_key: bytes("message_key")?,
        payload: bytes("payload")?,
        headers: Headers::encoded(bytes("headers")?.unwrap_or_default()),
        timestamp: row.try_get("timestamp_ms")?,
        parked_at: row.try_get("parked_at")?,
        closed_at: row.try_get("closed_at")?,
        outcome: row.try_get("outcome")?,
    })
}
