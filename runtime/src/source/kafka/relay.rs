use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::FutureRecord;

use super::producer::Producer;
use super::{Kafka, KafkaConfigError};
use crate::message::Headers;

/// Copies dead letters to `<topic>.dlq`, for people and tools that look there. The database has the
/// letter; the copy may come twice.
pub(crate) struct Relay {
    producer: Producer,
}

/// A record as it was, and what to add to its headers.
pub(crate) struct Copy<'a> {
    pub(crate) topic: &'a str,
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) payload: Option<&'a [u8]>,
    pub(crate) headers: &'a Headers,
    pub(crate) added: &'a [(&'static str, String)],
}

/// Why a copy was not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RelayError {
    #[error("topic `{0}` does not exist: create it, or look at the letters in the database")]
    NoTopic(String),
    #[error(
        "the record is larger than topic `{0}` takes: raise its max.message.bytes; the letter in the database is whole"
    )]
    TooLarge(String),
    #[error("{0}")]
    Kafka(#[from] KafkaError),
}

impl Relay {
    pub(crate) fn new(kafka: &Kafka) -> Result<Self, KafkaConfigError> {
        let mut config = kafka.producer();
        // Room for what is added to a record that was as large as its topic takes.
        if kafka.get("message.max.bytes").is_none() {
            config.set("message.max.bytes", "8388608");
        }
        // By default a missing topic is waited for so long that a batch runs out of time without a reason.
        config.set("topic.metadata.propagation.max.ms", "1000");
        Ok(Self { producer: Producer::new(&config)? })
    }

    pub(crate) async fn copy(&self, copy: &Copy<'_>) -> Result<(), RelayError> {
        let topic = format!("{}.dlq", copy.topic);
        let mut headers = OwnedHeaders::new();
        for (name, value) in copy.headers {
            let name = header_name(name);
            headers = headers.insert(Header { key: &name, value });
        }
        for (name, value) in copy.added {
            headers = headers.insert(Header { key: name, value: Some(value.as_bytes()) });
        }
        let mut record: FutureRecord<'_, [u8], [u8]> = FutureRecord::to(&topic).headers(headers);
        record.key = copy.key;
        record.payload = copy.payload;
        self.producer.send(record).await.map_err(|(error, _)| match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownTopic) => {
                RelayError::NoTopic(topic)
            }
            Some(RDKafkaErrorCode::MessageSizeTooLarge) => RelayError::TooLarge(topic),
            _ => error.into(),
        })?;
        Ok(())
    }
}

/// rdkafka takes names as text without NUL: any other is escaped, and whole in the database.
fn header_name(name: &[u8]) -> std::borrow::Cow<'_, str> {
    match std::str::from_utf8(name) {
        Ok(name) if !name.contains('\0') => name.into(),
        _ => name.escape_ascii().to_string().into(),
    }
}
