use futures_util::FutureExt;
use handstamp::{BoxError, Inbox};
use serde::{Deserialize, Serialize};
use sqlx::{Connection, PgConnection, Postgres};

/// What a handler must not do, after it has written its effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mischief {
    /// One of its statements fails, and it says that all went well.
    HidesError,
    /// COMMIT.
    Commits,
    /// ROLLBACK. Where its message is listed, somebody has mended it.
    RollsBack,
    Panics,
    /// Begins a nested transaction, and forgets it.
    Forgets,
    /// Sends a statement, does not wait for its answer, and fails. The next time it works.
    Drops,
}

impl Mischief {
    pub async fn act(self, partition: i32, offset: i64, inbox: &mut Inbox<Postgres>) -> Result<(), BoxError> {
        let attempt = inbox.attempt();
        let connection: &mut PgConnection = inbox;
        match self {
            Self::HidesError => {
                let _hidden = sqlx::query("SELECT 1 / 0").execute(connection).await;
            }
            Self::Commits => {
                sqlx::raw_sql("COMMIT").execute(connection).await?;
            }
            Self::RollsBack if is_listed(partition, offset, connection).await? => {}
            Self::RollsBack => {
                sqlx::raw_sql("ROLLBACK").execute(connection).await?;
            }
            Self::Panics => panic!("a handler that panics"),
            Self::Forgets => std::mem::forget(connection.begin().await?),
            Self::Drops if attempt == 1 => {
                // Polled once: its request is on its way then.
                let pay = sqlx::query("UPDATE account SET balance = balance + 1 WHERE id = 0");
                drop(pay.execute(connection).now_or_never());
                return Err("gone half-way".into());
            }
            Self::Drops => {}
        }
        Ok(())
    }
}

async fn is_listed(partition: i32, offset: i64, connection: &mut PgConnection) -> sqlx::Result<bool> {
    sqlx::query_scalar(
        r#"SELECT EXISTS (SELECT FROM handstamp.dead_letters WHERE partition = $1 AND "offset" = $2)"#,
    )
    .bind(partition)
    .bind(offset)
    .fetch_one(connection)
    .await
}
