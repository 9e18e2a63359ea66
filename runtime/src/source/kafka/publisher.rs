use std::sync::Arc;
use std::time::Duration;

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::FutureRecord;
use serde::Serialize;
use uuid::Uuid;

use super::producer::Producer;
use super::{Kafka, KafkaConfigError};
use crate::failure::BoxError;

/// The header that carries an event's id.
const EVENT_ID: &str = "event_id";

/// Publishes events that can be applied once: each carries an `event_id` header and the key of the
/// entity it is about, through an idempotent producer (`acks=all`).
///
/// ```no_run
/// # use handstamp::{Kafka, Publisher, Record};
/// # async fn f() -> Result<(), Box<dyn std::error::Error>> {
/// let publisher = Publisher::new(&Kafka::from_env()?)?;
/// let deposit = serde_json::json!({ "account_id": 7, "amount": 5 });
/// let event_id = publisher.publish(Record::to("wallet.deposits").key("account-7").json(&deposit)?).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Publisher {
    producer: Arc<Producer>,
}

/// A record to publish.
#[derive(Clone, Debug)]
pub struct Record {
    topic: String,
    key: Option<Vec<u8>>,
    payload: Option<Vec<u8>>,
    event_id: Option<String>,
    headers: Vec<(String, Vec<u8>)>,
}

/// Why an event was not published.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// It cannot be sent as it is; nothing was.
    #[error("an event for topic `{topic}` cannot be sent: {reason}")]
    #[non_exhaustive]
    Invalid {
        /// The topic.
        topic: String,
        /// What to change.
        reason: String,
    },
    /// It was not acknowledged. It may have arrived all the same: publish it again under the same id, and it
    /// is applied once.
    #[error(
        "event {event_id} for topic `{topic}` was not acknowledged: {error}; publish it again under the same id"
    )]
    #[non_exhaustive]
    NotAcknowledged {
        /// The id to publish it under again.
        event_id: String,
        /// The topic.
        topic: String,
        /// What the client said.
        #[source]
        error: BoxError,
    },
}

impl Record {
    /// A record for `topic`, still empty.
    #[must_use]
    pub fn to(topic: impl Into<String>) -> Self {
        Self { topic: topic.into(), key: None, payload: None, event_id: None, headers: Vec::new() }
    }

    /// The entity that the event is about: records of one key keep their order.
    #[must_use]
    pub fn key(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// The payload, as it is.
    #[must_use]
    pub fn payload(mut self, payload: impl Into<Vec<u8>>) -> Self {
        self.payload = Some(payload.into());
        self
    }

    /// The payload, as JSON.
    ///
    /// # Errors
    /// If `value` cannot be written as JSON.
    pub fn json(self, value: &impl Serialize) -> Result<Self, serde_json::Error> {
        Ok(self.payload(serde_json::to_vec(value)?))
    }

    /// The event's id, for one that has been published before. A new UUID of version 7 otherwise.
    #[must_use]
    pub fn event_id(mut self, id: impl Into<String>) -> Self {
        self.event_id = Some(id.into());
        self
    }

    /// Another header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Why every consumer would park it, or the client refuse it.
    fn refusal(&self) -> Option<String> {
        if self.event_id.as_deref() == Some("") {
            return Some("its id is empty: leave `event_id` out for a new one".to_owned());
        }
        let name = self
            .headers
            .iter()
            .map(|(name, _)| name)
            .find(|name| *name == EVENT_ID || name.contains('\0'))?;
        Some(match name.as_str() {
            EVENT_ID => format!("the header `{EVENT_ID}` is set by `Record::event_id`"),
            name => format!("the name of header {name:?} contains a NUL byte"),
        })
    }
}

impl Publisher {
    /// A publisher to these brokers.
    ///
    /// # Errors
    /// If librdkafka refuses the configuration.
    pub fn new(kafka: &Kafka) -> Result<Self, KafkaConfigError> {
        Ok(Self { producer: Arc::new(Producer::new(&kafka.producer())?) })
    }

    /// Publishes and waits for the acknowledgement; returns the event's id.
    ///
    /// Dropping the future does not call the record back.
    ///
    /// # Errors
    /// If it cannot be sent as it is, or was not acknowledged; then it may have arrived all the same.
    pub async fn publish(&self, record: Record) -> Result<String, PublishError> {
        if let Some(reason) = record.refusal() {
            return Err(PublishError::Invalid { topic: record.topic, reason });
        }
        let event_id = record.event_id.unwrap_or_else(|| Uuid::now_v7().to_string());
        let mut headers = OwnedHeaders::new_with_capacity(record.headers.len() + 1)
            .insert(Header { key: EVENT_ID, value: Some(event_id.as_bytes()) });
        for (name, value) in &record.headers {
            headers = headers.insert(Header { key: name, value: Some(value) });
        }
        let mut outgoing: FutureRecord<'_, [u8], [u8]> = FutureRecord::to(&record.topic).headers(headers);
        outgoing.key = record.key.as_deref();
        outgoing.payload = record.payload.as_deref();
        match self.producer.send(outgoing).await {
            Ok(_) => Ok(event_id),
            Err((error, _)) => {
                let error = explain(&error, &record.topic);
                Err(PublishError::NotAcknowledged { event_id, topic: record.topic, error })
            }
        }
    }

    /// Waits until everything handed over was acknowledged or given up, blocking the thread. Only for records
    /// whose [`publish`](Self::publish) was not waited for.
    ///
    /// # Errors
    /// If that takes longer than `limit`.
    pub fn flush(&self, limit: Duration) -> Result<(), BoxError> {
        self.producer.flush(limit).map_err(Into::into)
    }
}

fn explain(error: &KafkaError, topic: &str) -> BoxError {
    match error.rdkafka_error_code() {
        Some(RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownTopic) => {
            format!("topic `{topic}` does not exist: create it first").into()
        }
        Some(RDKafkaErrorCode::QueueFull) => {
            "the producer's queue stayed full: is a broker reachable?".into()
        }
        _ => error.to_string().into(),
    }
}

impl std::fmt::Debug for Publisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Publisher").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_consumer_would_park_is_not_published() {
        let refusal = |record: Record| record.refusal().unwrap_or_default();
        assert!(refusal(Record::to("t").event_id("")).contains("empty"));
        assert!(refusal(Record::to("t").header("event_id", "evt-1")).contains("Record::event_id"));
        assert!(refusal(Record::to("t").header("a\0b", "")).contains("NUL"));
        assert_eq!(Record::to("t").event_id("evt-1").header("type", "deposit").refusal(), None);
    }
}
