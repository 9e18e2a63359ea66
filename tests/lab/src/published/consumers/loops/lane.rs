use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use rdkafka::consumer::{CommitMode, Consumer};
use rdkafka::{Offset, TopicPartitionList};
use tokio::task::block_in_place;

use super::super::Task;
use super::super::plain::Offsets;
use super::inlet::{Credit, Inlet};
use super::session::Writing;

/// Messages that are applied one transaction after the other.
pub struct Lane {
    pub inlet: Inlet,
    pub most: usize,
    pub writing: Writing,
    pub offsets: Offsets,
    pub task: Arc<Task>,
}

impl Lane {
    /// Until there are no more; from Kafka there are always more.
    pub async fn run(mut self) -> Result<()> {
        loop {
            let credits = self.inlet.take(self.most).await?;
            self.task.tally.begin();
            if credits.is_empty() {
                return Ok(());
            }
            self.writing.apply(&self.task, &credits).await?;
            self.move_offsets(&credits)?;
            for credit in credits {
                self.task.tally.finish(credit.partition, credit.offset);
            }
        }
    }

    fn move_offsets(&self, credits: &[Credit]) -> Result<()> {
        let Some(consumer) = self.inlet.consumer() else { return Ok(()) };
        let last: BTreeMap<_, _> = credits.iter().map(|credit| (credit.partition, credit.offset)).collect();
        let mut next = TopicPartitionList::new();
        for (partition, offset) in last {
            next.add_partition_offset(&self.task.source.topic, partition, Offset::Offset(offset + 1))?;
        }
        if self.offsets == Offsets::Committed {
            block_in_place(|| consumer.commit(&next, CommitMode::Sync))?;
        } else {
            consumer.store_offsets(&next)?;
        }
        Ok(())
    }
}
