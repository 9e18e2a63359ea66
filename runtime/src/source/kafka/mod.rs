//! The only place that names rdkafka.

#[cfg(feature = "cli")]
mod admin;
mod assignment;
mod config;
mod convert;
mod ffi;
mod handover;
mod lookup;
mod poll;
mod producer;
mod publisher;
mod rebalance;
mod relay;

use std::sync::Arc;

use rdkafka::consumer::BaseConsumer;

#[cfg(feature = "cli")]
pub(crate) use admin::{Admin, PartitionLog, TopicLog};
pub use config::{Kafka, KafkaConfigError};
pub(crate) use handover::{Command, Fetched, Input, Released, Start, Trouble};
pub(crate) use lookup::{Broker, Committed, LookupError, NotReady, check};
pub use publisher::{PublishError, Publisher, Record};
pub(crate) use relay::{Copy, Relay, RelayError};

use crate::flow::Tp;

/// A consumer whose rebalances we decide.
type Consumer = BaseConsumer<rebalance::Context>;

/// The topics a client reads, by the index that the core knows them by.
#[derive(Clone, Debug)]
pub(crate) struct Topics(Arc<[Arc<str>]>);

impl Topics {
    pub(crate) fn new(names: impl IntoIterator<Item = Arc<str>>) -> Self {
        Self(names.into_iter().collect())
    }

    pub(crate) fn name(&self, tp: Tp) -> &Arc<str> {
        &self.0[usize::from(tp.topic)]
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(AsRef::as_ref)
    }

    fn find(&self, topic: &str, partition: i32) -> Option<Tp> {
        let index = self.0.iter().position(|name| **name == *topic)?;
        Some(Tp { topic: u16::try_from(index).ok()?, partition })
    }
}
