use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::message::ToBytes;
use rdkafka::producer::future_producer::OwnedDeliveryResult;
use rdkafka::producer::{FutureProducer, FutureRecord, Producer as _};
use tokio::time::{Instant, timeout};

use super::lookup::Quiet;
use super::{KafkaConfigError, ffi};

/// How long an acknowledgement may take before the client is given its brokers again; also how often.
const SILENCE: Duration = Duration::from_secs(5);
/// How long a full queue may hold up a record before that is an error.
const QUEUE_LIMIT: Duration = Duration::from_secs(10);

/// A producer that finds its brokers again when it has forgotten them all.
pub(super) struct Producer {
    inner: FutureProducer<Quiet>,
    brokers: String,
    introduced: Mutex<Instant>,
}

impl Producer {
    pub(super) fn new(config: &ClientConfig) -> Result<Self, KafkaConfigError> {
        let inner = config
            .create_with_context(Quiet)
            .map_err(|error: KafkaError| KafkaConfigError::Refused(error.to_string()))?;
        let brokers = config.get("bootstrap.servers").unwrap_or_default().to_owned();
        Ok(Self { inner, brokers, introduced: Mutex::new(Instant::now()) })
    }

    /// Waits for the acknowledgement.
    pub(super) async fn send<K, P>(&self, record: FutureRecord<'_, K, P>) -> OwnedDeliveryResult
    where
        K: ToBytes + ?Sized,
        P: ToBytes + ?Sized,
    {
        let mut sending = std::pin::pin!(self.inner.send(record, QUEUE_LIMIT));
        loop {
            match timeout(SILENCE, &mut sending).await {
                Ok(delivered) => return delivered,
                Err(_) => self.introduce(),
            }
        }
    }

    pub(super) fn flush(&self, limit: Duration) -> Result<(), KafkaError> {
        self.inner.flush(limit)
    }

    /// Once in a while, however many wait.
    fn introduce(&self) {
        let mut introduced = self.introduced.lock().unwrap_or_else(PoisonError::into_inner);
        if introduced.elapsed() >= SILENCE {
            *introduced = Instant::now();
            ffi::add_brokers(self.inner.client(), &self.brokers);
        }
    }
}
