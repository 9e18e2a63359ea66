use sqlx::{PgConnection, Postgres};

use crate::inbox::consumers::{Consumer, ConsumerId, ConsumerStore, Edit, Registration};

type Row = (i16, String, String, String, Option<String>, Vec<String>);

impl ConsumerStore for Postgres {
    async fn lock_consumers(connection: &mut PgConnection) -> sqlx::Result<()> {
        sqlx::query("LOCK TABLE handstamp.consumers IN SHARE ROW EXCLUSIVE MODE").execute(connection).await?;
        Ok(())
    }

    async fn consumers(connection: &mut PgConnection) -> sqlx::Result<Vec<Consumer>> {
        let rows: Vec<Row> = sqlx::query_as(
            r#"SELECT id, name, key_definition, handler, "group", topics FROM handstamp.consumers ORDER BY name"#,
        )
        .fetch_all(connection)
        .await?;
        Ok(rows.into_iter().map(consumer).collect())
    }

    async fn insert_consumer(
        connection: &mut PgConnection,
        id: ConsumerId,
        registration: &Registration<'_>,
    ) -> sqlx::Result<()> {
        sqlx::query(
            r#"INSERT INTO handstamp.consumers (id, name, key_definition, handler, "group", topics)
               VALUES ($1, $2, $3, $4, $5, $6)"#,
        )
        .bind(id.0)
        .bind(registration.name)
        .bind(registration.key_definition)
        .bind(registration.handler)
        .bind(registration.group)
        .bind(registration.topics)
        .execute(connection)
        .await?;
        Ok(())
    }

    async fn update_consumer(
        connection: &mut PgConnection,
        id: ConsumerId,
        registration: &Registration<'_>,
    ) -> sqlx::Result<()> {
        sqlx::query(
            r#"UPDATE handstamp.consumers
               SET handler = $2, "group" = COALESCE($3, "group"),
                   topics = CASE WHEN cardinality($4::text[]) = 0 THEN topics ELSE $4 END, updated_at = now()
               WHERE id = $1"#,
        )
        .bind(id.0)
        .bind(registration.handler)
        .bind(registration.group)
        .bind(registration.topics)
        .execute(connection)
        .await?;
        Ok(())
    }

    async fn edit_consumer(
        connection: &mut PgConnection,
        id: ConsumerId,
        edit: Edit<'_>,
    ) -> sqlx::Result<()> {
        let query = match edit {
            Edit::KeyDefinition(definition) => sqlx::query(
                "UPDATE handstamp.consumers SET key_definition = $2, updated_at = now() WHERE id = $1",
            )
            .bind(id.0)
            .bind(definition),
            Edit::Name(name) => {
                sqlx::query("UPDATE handstamp.consumers SET name = $2, updated_at = now() WHERE id = $1")
                    .bind(id.0)
                    .bind(name)
            }
            Edit::Owner => sqlx::query(
                r#"UPDATE handstamp.consumers
                   SET handler = '', "group" = NULL, topics = '{}', updated_at = now() WHERE id = $1"#,
            )
            .bind(id.0),
        };
        query.execute(connection).await?;
        Ok(())
    }
}

fn consumer((id, name, key_definition, handler, group, topics): Row) -> Consumer {
    Consumer { id: ConsumerId(id), name, key_definition, handler, group, topics }
}
