use std::sync::Arc;
use std::vec::IntoIter;

use anyhow::{Context, Result};
use futures_util::FutureExt;
use rdkafka::Message;
use rdkafka::consumer::stream_consumer::StreamPartitionQueue;
use rdkafka::consumer::{DefaultConsumerContext, StreamConsumer};
use rdkafka::error::KafkaResult;
use rdkafka::message::BorrowedMessage;
use shipped::Deposit;
use uuid::Uuid;

use super::super::super::feed::{self, ACCOUNTS, PARTITIONS};
use super::super::Task;
use super::super::plain::{self, Offsets};

/// A message, read.
#[derive(Clone, Debug, Default)]
pub struct Credit {
    pub event: String,
    pub deposit: Deposit,
    pub partition: i32,
    pub offset: i64,
}

/// Where the messages of a lane come from.
pub enum Inlet {
    Stream(Arc<StreamConsumer>),
    Queue(Arc<StreamConsumer>, StreamPartitionQueue<DefaultConsumerContext>),
    Memory(IntoIter<Credit>),
}

/// All partitions in one.
pub fn stream(task: &Task, offsets: Offsets) -> Result<Vec<Inlet>> {
    Ok(vec![Inlet::Stream(Arc::new(plain::join(task, offsets)?))])
}

/// One for each partition.
pub fn queues(task: &Task, offsets: Offsets) -> Result<Vec<Inlet>> {
    let consumer = Arc::new(plain::join(task, offsets)?);
    let mut queues = Vec::new();
    for partition in 0..PARTITIONS {
        let queue = consumer.split_partition_queue(&task.source.topic, partition);
        queues.push(Inlet::Queue(Arc::clone(&consumer), queue.context("a partition without a queue")?));
    }
    // Rebalances and errors come this way, and nothing at all if nobody asks.
    tokio::spawn(async move {
        loop {
            if let Err(error) = consumer.recv().await {
                plain::report(&error);
            }
        }
    });
    Ok(queues)
}

/// What a topic with so many messages would hold, partition by partition.
pub fn memory(messages: u64) -> Result<Vec<Inlet>> {
    let mut partitions = vec![Vec::new(); usize::try_from(PARTITIONS)?];
    for number in 0..messages {
        let deposit = feed::deposit(number, ACCOUNTS)?;
        let partition = feed::partition(&deposit)?;
        let credits = &mut partitions[usize::try_from(partition)?];
        let offset = i64::try_from(credits.len())?;
        credits.push(Credit { event: Uuid::new_v4().to_string(), deposit, partition, offset });
    }
    Ok(partitions.into_iter().map(|credits| Inlet::Memory(credits.into_iter())).collect())
}

impl Inlet {
    /// Waits for a message, and takes what is there already with it; nothing once there will be none.
    pub async fn take(&mut self, most: usize) -> Result<Vec<Credit>> {
        let mut taken = Vec::new();
        if let Self::Memory(credits) = self {
            taken.extend(credits.take(most));
            return Ok(taken);
        }
        while taken.len() < most {
            let next =
                if taken.is_empty() { Some(self.receive().await) } else { self.receive().now_or_never() };
            match next {
                Some(Ok(message)) => taken.push(Credit::read(&message)?),
                Some(Err(error)) => plain::report(&error),
                None => break,
            }
        }
        Ok(taken)
    }

    /// Whose offsets these are.
    pub fn consumer(&self) -> Option<&StreamConsumer> {
        match self {
            Self::Stream(consumer) | Self::Queue(consumer, _) => Some(consumer),
            Self::Memory(_) => None,
        }
    }

    async fn receive(&self) -> KafkaResult<BorrowedMessage<'_>> {
        match self {
            Self::Stream(consumer) => consumer.recv().await,
            Self::Queue(_, queue) => queue.recv().await,
            Self::Memory(_) => std::future::pending().await,
        }
    }
}

impl Credit {
    fn read(message: &BorrowedMessage<'_>) -> Result<Self> {
        let (event, deposit) = plain::read(message)?;
        Ok(Self {
            event: event.to_owned(),
            deposit,
            partition: message.partition(),
            offset: message.offset(),
        })
    }

    pub fn events(credits: &[Self]) -> Vec<&str> {
        credits.iter().map(|credit| &*credit.event).collect()
    }
}
