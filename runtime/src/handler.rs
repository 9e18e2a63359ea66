//! What `#[idempotent]` implements.

use std::time::Duration;

use crate::failure::{BoxError, Failure};
use crate::flow::Order;
use crate::inbox::Access;
use crate::key::KeySource;
use crate::message::Argument;

/// A handler: what `#[idempotent]` implements for the struct that shares the function's name.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an idempotent handler",
    label = "put `#[idempotent(consumer = \"…\", key = …)]` on the function"
)]
pub trait Handler: Send + Sync + 'static {
    /// The consumer's name: the scope of deduplication, and by default the Kafka group.
    const CONSUMER: &'static str;
    /// Where a message's key comes from.
    const KEY: KeySource;
    /// The other options of the attribute.
    const OPTIONS: Options;
    /// The path of the function, for people.
    const PATH: &'static str;
    /// A list `(A, (B, ()))` of what the handler takes by value. Unbounded here, so that a mistake is
    /// reported at the one argument at fault.
    type Arguments: Send;
    /// What the handler takes as `&mut`.
    type Access: Access;
    /// What the handler returns.
    type Output: Outcome;

    /// Calls the function.
    fn call(
        arguments: Self::Arguments,
        access: &mut Self::Access,
    ) -> impl Future<Output = Self::Output> + Send;
}

/// One impl per argument, so that the bound reports at the type as the user wrote it.
#[doc(hidden)]
pub trait Takes<const INDEX: usize> {
    type Argument: Argument;
}

/// What a handler may return.
#[diagnostic::on_unimplemented(
    message = "an idempotent handler cannot return `{Self}`",
    label = "expected `Result<(), E>` where `E: Into<Box<dyn Error + Send + Sync>>`"
)]
pub trait Outcome: Send {
    /// Classifies an error by its concrete type, before boxing hides it.
    ///
    /// # Errors
    /// The handler's own.
    fn into_result(self) -> Result<(), Failure>;
}

impl<E: Into<BoxError> + Send + 'static> Outcome for Result<(), E> {
    fn into_result(self) -> Result<(), Failure> {
        self.map_err(Failure::from_handler)
    }
}

/// How many messages a transaction may hold unless the handler says,
const BATCH: usize = 500;
/// and where all of them are written together, which pays in larger numbers.
pub(crate) const BULK: usize = 5_000;

/// The options of `#[idempotent]` beyond `consumer` and `key`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    pub(crate) attempts: u32,
    pub(crate) timeout: Duration,
    pub(crate) order: Order,
    pub(crate) batch: Option<usize>,
    pub(crate) start_at: StartAt,
    pub(crate) on_tombstone: OnTombstone,
    pub(crate) on_out_of_range: OnOutOfRange,
}

/// Where a consumer that has never run starts reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartAt {
    /// At the start of the log.
    Earliest,
    /// Behind what is there now.
    Latest,
}

/// What becomes of a message without a payload that the handler or the key cannot do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnTombstone {
    /// Skipped and counted; its offset moves.
    Skip,
    /// Parked as a dead letter.
    Park,
}

/// What happens when the offset to read from is no longer, or not yet, in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnOutOfRange {
    /// The partition stops and says how much is gone.
    Stop,
    /// It goes on at the start of the log if what it wants has been deleted; the gap is logged. An offset
    /// beyond the end always stops.
    Earliest,
}

impl Options {
    /// What holds where the attribute is silent: in the order of the partition, 5 attempts, 30 seconds, up to 500
    /// messages to a transaction or 5,000 that are written together, earliest, skip, stop.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            attempts: 5,
            timeout: Duration::from_secs(30),
            order: Order::Partition,
            batch: None,
            start_at: StartAt::Earliest,
            on_tombstone: OnTombstone::Skip,
            on_out_of_range: OnOutOfRange::Stop,
        }
    }

    /// How often a failing message is tried before it is parked.
    #[must_use]
    pub const fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// How long one call of the handler may take, in milliseconds.
    #[must_use]
    pub const fn timeout_ms(mut self, milliseconds: u64) -> Self {
        self.timeout = Duration::from_millis(milliseconds);
        self
    }

    /// Which messages of a partition are applied one after the other.
    #[must_use]
    pub const fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// How many messages of a backlog one transaction may hold; 1 for each on its own.
    #[must_use]
    pub const fn batch(mut self, messages: usize) -> Self {
        self.batch = Some(messages);
        self
    }

    /// The same, but only where the attribute is silent.
    #[must_use]
    pub(crate) fn or_batch(self, messages: usize) -> Self {
        Self { batch: self.batch.or(Some(messages)), ..self }
    }

    /// How many messages of a backlog one transaction may hold.
    pub(crate) fn batch_size(&self) -> usize {
        self.batch.unwrap_or(BATCH)
    }

    /// Where a consumer that has never run starts.
    #[must_use]
    pub const fn start_at(mut self, start_at: StartAt) -> Self {
        self.start_at = start_at;
        self
    }

    /// What becomes of tombstones that cannot be handled.
    #[must_use]
    pub const fn on_tombstone(mut self, on_tombstone: OnTombstone) -> Self {
        self.on_tombstone = on_tombstone;
        self
    }

    /// What happens when the wanted offset is off the log.
    #[must_use]
    pub const fn on_out_of_range(mut self, on_out_of_range: OnOutOfRange) -> Self {
        self.on_out_of_range = on_out_of_range;
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}
