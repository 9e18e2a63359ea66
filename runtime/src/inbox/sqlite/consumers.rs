use sqlx::{Sqlite, SqliteConnection};

use crate::inbox::consumers::{Consumer, ConsumerId, ConsumerStore, Edit, Registration};

type Row = (i16, String, String, String, Option<String>, String);

impl ConsumerStore for Sqlite {
    /// There is one writer at a time, and this is it since BEGIN IMMEDIATE.
    async fn lock_consumers(_: &mut SqliteConnection) -> sqlx::Result<()> {
        Ok(())
    }

    async fn consumers(connection: &mut SqliteConnection) -> sqlx::Result<Vec<Consumer>> {
        let rows: Vec<Row> = sqlx::query_as(
            r#"SELECT id, name, key_definition, handler, "group", topics FROM handstamp_consumers ORDER BY name"#,
        )
        .fetch_all(connection)
        .await?;
        rows.into_iter().map(consumer).collect()
    }

    async fn insert_consumer(
        connection: &mut SqliteConnection,
        id: ConsumerId,
        registration: &Registration<'_>,
    ) -> sqlx::Result<()> {
        sqlx::query(
            r#"INSERT INTO handstamp_consumers (id, name, key_definition, handler, "group", topics)
               VALUES (?, ?, ?, ?, ?, ?)"#,
        )
        .bind(id.0)
        .bind(registration.name)
        .bind(registration.key_definition)
        .bind(registration.handler)
        .bind(registration.group)
        .bind(json(registration.topics))
        .execute(connection)
        .await?;
        Ok(())
    }

    async fn update_consumer(
        connection: &mut SqliteConnection,
        id: ConsumerId,
        registration: &Registration<'_>,
    ) -> sqlx::Result<()> {
        sqlx::query(
            r#"UPDATE handstamp_consumers
               SET handler = ?2, "group" = COALESCE(?3, "group"),
                   topics = CASE WHEN ?4 = '[]' THEN topics ELSE ?4 END, updated_at = unixepoch()
               WHERE id = ?1"#,
        )
        .bind(id.0)
        .bind(registration.handler)
        .bind(registration.group)
        .bind(json(registration.topics))
        .execute(connection)
        .await?;
        Ok(())
    }

    async fn edit_consumer(
        connection: &mut SqliteConnection,
        id: ConsumerId,
        edit: Edit<'_>,
    ) -> sqlx::Result<()> {
        let query = match edit {
            Edit::KeyDefinition(definition) => sqlx::query(
                "UPDATE handstamp_consumers SET key_definition = ?2, updated_at = unixepoch() WHERE id = ?1",
            )
            .bind(id.0)
            .bind(definition),
            Edit::Name(name) => sqlx::query(
                "UPDATE handstamp_consumers SET name = ?2, updated_at = unixepoch() WHERE id = ?1",
            )
            .bind(id.0)
            .bind(name),
            Edit::Owner => sqlx::query(
                r#"UPDATE handstamp_consumers
                   SET handler = '', "group" = NULL, topics = '[]', updated_at = unixepoch() WHERE id = ?1"#,
            )
            .bind(id.0),
        };
        query.execute(connection).await?;
        Ok(())
    }
}

fn json(topics: &[&str]) -> String {
    serde_json::Value::from(topics).to_string()
}

fn consumer((id, name, key_definition, handler, group, topics): Row) -> sqlx::Result<Consumer> {
    let topics = serde_json::from_str(&topics).map_err(|error| sqlx::Error::Decode(error.into()))?;
    Ok(Consumer { id: ConsumerId(id), name, key_definition, handler, group, topics })
}
