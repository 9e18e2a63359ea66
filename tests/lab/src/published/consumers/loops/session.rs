use anyhow::Result;
use shipped::Work;
use sqlx::{Connection, PgConnection, PgPool};

use super::super::Task;
use super::claims::Claims;
use super::inlet::Credit;
use super::pipeline::Pipeline;

/// A lane's connection, by the client that does what the loop needs.
pub enum Writing {
    Waiting(Session),
    Pipelined(Pipeline),
}

/// One that waits for the answer of each statement.
pub struct Session {
    pub database: Database,
    pub claims: Claims,
    /// Whether all messages share their statements.
    pub together: bool,
}

/// Where its transactions begin.
pub enum Database {
    Connection(PgConnection),
    Pool(PgPool),
}

impl Writing {
    /// Remembers and applies messages, in one transaction.
    pub async fn apply(&mut self, task: &Task, credits: &[Credit]) -> Result<()> {
        match self {
            Self::Waiting(session) => session.apply(&task.work, credits).await,
            Self::Pipelined(pipeline) => pipeline.apply(credits).await,
        }
    }
}

impl Session {
    async fn apply(&mut self, work: &Work, credits: &[Credit]) -> Result<()> {
        let mut transaction = match &mut self.database {
            Database::Connection(connection) => connection.begin().await?,
            Database::Pool(pool) => pool.begin().await?,
        };
        let fresh = self.claims.claim(&mut transaction, credits).await?;
        if self.together {
            let fresh = fresh.iter().map(|credit| (&*credit.event, &credit.deposit));
            Work::credit_all(&mut transaction, fresh).await?;
        } else {
            for credit in fresh {
                work.credit(&mut transaction, &credit.event, &credit.deposit).await?;
            }
        }
        Ok(transaction.commit().await?)
    }
}
