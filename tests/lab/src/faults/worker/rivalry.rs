use std::time::Duration;

use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use tokio::time::sleep;

/// In which way a handler gets in the way of others, at the same few rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rivalry {
    /// Locks two rows; half of all, in the other order.
    Crosses { upwards: bool },
    /// Moves a row to another partition of its table: who has waited for it cannot go on, whatever the
    /// isolation level.
    Moves,
    /// Does not wait long.
    Hurries,
}

/// How long a lock is held for others to come.
const HELD: Duration = Duration::from_millis(20);

impl Rivalry {
    /// What rivals need in the database. Worker processes that start later find deadlocks at once.
    pub const TABLES: &str = "
        CREATE TABLE rival (id int4 PRIMARY KEY);
        INSERT INTO rival VALUES (0), (1), (2);
        CREATE TABLE seat (is_left bool NOT NULL) PARTITION BY LIST (is_left);
        CREATE TABLE seat_left PARTITION OF seat FOR VALUES IN (true);
        CREATE TABLE seat_right PARTITION OF seat FOR VALUES IN (false);
        INSERT INTO seat VALUES (true);
        DO $$ BEGIN
            EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = ''10ms''', current_database());
            EXECUTE format('ALTER DATABASE %I SET lc_messages = ''C''', current_database());
        END $$";

    pub async fn act(self, connection: &mut PgConnection) -> sqlx::Result<()> {
        match self {
            Self::Crosses { upwards } => {
                let (first, second) = if upwards { (0, 1) } else { (1, 0) };
                lock(first, connection).await?;
                sleep(HELD).await;
                lock(second, connection).await?;
            }
            Self::Moves => {
                sqlx::query("UPDATE seat SET is_left = NOT is_left").execute(connection).await?;
                sleep(HELD).await;
            }
            Self::Hurries => {
                sqlx::query("SET LOCAL lock_timeout = '5ms'").execute(&mut *connection).await?;
                lock(2, connection).await?;
                sleep(HELD).await;
            }
        }
        Ok(())
    }
}

async fn lock(row: i32, connection: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query("SELECT FROM rival WHERE id = $1 FOR UPDATE").bind(row).execute(connection).await?;
    Ok(())
}
