use std::sync::Arc;

use sqlx::Pool;

use crate::cli::output;
use crate::cli::refused::Refused;
use crate::inbox::Store;
use crate::inbox::consumers::Consumer;
use crate::inbox::progress::{self, Progress, TrackedPartition};
use crate::source::kafka::TopicLog;

/// Where a consumer is to go on in a partition.
#[derive(Debug)]
pub(super) struct Change {
    before: Option<Progress>,
    partition: TrackedPartition,
    next: i64,
}

/// What is to become of a consumer's rows on a topic.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    consumer: &'a Consumer,
    changes: Vec<Change>,
}

impl<'a> Plan<'a> {
    /// Sets these partitions to these offsets.
    pub(super) async fn new<DB: Store>(
        pool: &Pool<DB>,
        consumer: &'a Consumer,
        topic: &str,
        log: &TopicLog,
        offsets: impl IntoIterator<Item = (i32, i64)>,
    ) -> Result<Self, Refused> {
        let rows = progress::read(pool, consumer.id, topic).await?;
        let (topic, cluster) = (Arc::from(topic), Arc::from(log.cluster.as_str()));
        let changes = offsets.into_iter().map(|(partition, next)| Change {
            before: rows.iter().find(|row| row.partition.partition == partition).cloned(),
            partition: TrackedPartition {
                topic: Arc::clone(&topic),
                partition,
                cluster: Arc::clone(&cluster),
                topic_id: log.id,
                incarnation: 1,
            },
            next,
        });
        Ok(Self { consumer, changes: changes.collect() })
    }

    /// Whether a row says something else so far.
    pub(super) fn overwrites(&self) -> bool {
        self.changes.iter().any(|change| {
            change
                .before
                .as_ref()
                .is_some_and(|before| before.next != change.next || !change.is_same_log(before))
        })
    }

    pub(super) fn show(&self) -> Result<(), Refused> {
        let mut table = output::table(["topic", "partition", "next now", "next then", "what that means"]);
        for change in &self.changes {
            let partition = &change.partition;
            table.add_row([
                partition.topic.to_string(),
                partition.partition.to_string(),
                change.before.as_ref().map_or_else(|| "none".to_owned(), |before| before.next.to_string()),
                change.next.to_string(),
                change.meaning(),
            ]);
        }
        output::text(table.trim_fmt())
    }

    pub(super) async fn carry_out<DB: Store>(&self, pool: &Pool<DB>) -> Result<(), Refused> {
        let name = &self.consumer.name;
        for Change { partition, next, .. } in &self.changes {
            progress::reset(pool, name, partition, *next).await.map_err(|failure| {
                Refused::failed(format!(
                    "stopped at partition {}, those before it are changed: {failure}; run the command again",
                    partition.partition
                ))
            })?;
        }
        output::text(format_args!(
            "done: `{name}` goes on there. Its workers notice within seconds; what the inbox remembers is not \
             applied again"
        ))
    }
}

impl Change {
    fn is_same_log(&self, before: &Progress) -> bool {
        before.partition.cluster == self.partition.cluster
            && before.partition.topic_id == self.partition.topic_id
    }

    fn meaning(&self) -> String {
        match &self.before {
            None => "a new row".to_owned(),
            Some(before) if !self.is_same_log(before) => {
                "the row was another topic's or cluster's, of the same name".to_owned()
            }
            Some(before) if self.next > before.next => {
                format!("{} offsets are skipped", self.next - before.next)
            }
            Some(before) if self.next < before.next => {
                format!("{} offsets are read again", before.next - self.next)
            }
            Some(_) => "no other place".to_owned(),
        }
    }
}
