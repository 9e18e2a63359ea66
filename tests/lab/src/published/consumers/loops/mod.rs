//! Consumers as people write them by hand for speed, and the same statements without Kafka: loops that differ in a
//! few choices. Each lane keeps a connection unless it says otherwise, and no loop waits for a batch to fill.

mod claims;
mod inlet;
mod lane;
mod pipeline;
mod session;

use std::sync::Arc;

use anyhow::{Context, Result};
use futures_util::future::try_join_all;

use self::claims::Claims;
use self::lane::Lane;
use self::pipeline::Pipeline;
use self::session::{Database, Session, Writing};
use super::Task;
use super::plain::Offsets;

/// As many messages to a transaction as people usually take.
const BATCH: usize = 500;
/// As many as pay where they share their statements.
const BULK: usize = 5_000;

/// What a loop does.
#[derive(Clone, Copy, Debug)]
pub struct Loop {
    feeding: Feeding,
    /// The most messages of a transaction.
    most: usize,
    claims: Claims,
    statements: Statements,
    offsets: Offsets,
    /// Whether each transaction takes its connection out of the pool.
    pooled: bool,
}

/// Where messages come from.
#[derive(Clone, Copy, Debug)]
enum Feeding {
    /// All partitions in one lane.
    Stream,
    /// A lane for each partition.
    Queues,
    /// As many lanes, and no Kafka.
    Memory,
}

/// How the effects of a transaction are written.
#[derive(Clone, Copy, Debug)]
enum Statements {
    /// Waiting for each.
    Each,
    /// Each, but waiting for all at once.
    Pipelined,
    /// Two for all messages.
    Together,
}

impl Loop {
    /// One message, its inbox row, then its offset, and nothing else at a time.
    pub const SEED: Self = Self { offsets: Offsets::Committed, feeding: Feeding::Stream, ..Self::EACH };
    pub const EACH: Self = Self {
        feeding: Feeding::Queues,
        most: 1,
        claims: Claims::Plain,
        statements: Statements::Each,
        offsets: Offsets::Stored,
        pooled: false,
    };
    /// As most people write it: `pool.begin()`.
    pub const POOLED: Self = Self { pooled: true, ..Self::EACH };
    pub const BATCH: Self = Self { feeding: Feeding::Stream, most: BATCH, ..Self::EACH };
    pub const PIPELINED: Self = Self { most: BATCH, statements: Statements::Pipelined, ..Self::EACH };
    pub const NO_INBOX: Self = Self { most: BATCH, claims: Claims::None, ..Self::EACH };
    pub const BULK: Self = Self { most: BULK, statements: Statements::Together, ..Self::EACH };
    pub const BULK_NO_INBOX: Self = Self { claims: Claims::None, ..Self::BULK };
    /// What the database can do at most: handstamp's own table, the statements of [`EACH`](Self::EACH).
    pub const RAW_EACH: Self = Self { feeding: Feeding::Memory, claims: Claims::Inbox, ..Self::EACH };
    pub const RAW: Self = Self { most: BATCH, ..Self::RAW_EACH };
    pub const BULK_RAW: Self = Self { most: BULK, statements: Statements::Together, ..Self::RAW_EACH };

    /// Whether it fills an inbox.
    pub fn remembers(self) -> bool {
        !matches!(self.claims, Claims::None)
    }

    /// Whether it has offsets to commit.
    pub fn reads_kafka(self) -> bool {
        !matches!(self.feeding, Feeding::Memory)
    }

    /// Consumes for ever; what is in memory comes to an end.
    pub(super) async fn run(self, task: Task) -> Result<()> {
        let task = Arc::new(task);
        let inlets = match self.feeding {
            Feeding::Stream => inlet::stream(&task, self.offsets)?,
            Feeding::Queues => inlet::queues(&task, self.offsets)?,
            Feeding::Memory => {
                inlet::memory(task.tally.until().context("memory holds a number of messages")?)?
            }
        };
        let mut lanes = Vec::new();
        for inlet in inlets {
            let lane = Lane {
                inlet,
                most: self.most,
                writing: self.writing(&task).await?,
                offsets: self.offsets,
                task: Arc::clone(&task),
            };
            lanes.push(lane);
        }
        let lanes = lanes.into_iter().map(|lane| tokio::spawn(lane.run()));
        for ended in try_join_all(lanes).await? {
            ended?;
        }
        // Whoever started this process ends it.
        std::future::pending().await
    }

    async fn writing(self, task: &Task) -> Result<Writing> {
        Ok(match self.statements {
            Statements::Pipelined => Writing::Pipelined(Pipeline::connect(&task.database).await?),
            statements => Writing::Waiting(Session {
                database: if self.pooled {
                    Database::Pool(task.pool.clone())
                } else {
                    Database::Connection(task.pool.acquire().await?.detach())
                },
                claims: self.claims,
                together: matches!(statements, Statements::Together),
            }),
        })
    }
}
