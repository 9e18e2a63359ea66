//! A message, copied out of whatever delivered it, and where it stood.

mod extract;
mod headers;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

pub use extract::{
    Argument, Arguments, EventId, FromMessage, FromRef, Json, Needs, Nothing, Payload, Provides, State, Text,
};
pub use headers::Headers;

/// One message: key, payload, headers and, where the source has one, its position.
///
/// Everything lives in one buffer that is filled once, so a clone copies no bytes and a header costs
/// no allocation. Sources other than Kafka build it with [`Message::builder`].
///
/// ```
/// let message = handstamp::Message::builder()
///     .header("event_id", "0199aaaa-0000-7000-8000-000000000001")
///     .payload(br#"{"account_id": 7, "amount": 5}"#)
///     .build();
/// assert_eq!(message.headers().get("event_id").count(), 1);
/// ```
#[derive(Clone)]
pub struct Message {
    buffer: Bytes,
    key: Option<Range<usize>>,
    payload: Option<Range<usize>>,
    headers: Range<usize>,
    position: Option<Position>,
    timestamp: Option<i64>,
}

impl Message {
    /// An empty message, to be filled.
    #[must_use]
    pub fn builder() -> MessageBuilder {
        MessageBuilder::default()
    }

    /// The message key: what Kafka chooses the partition by. `None` where it is null.
    #[must_use]
    pub fn key(&self) -> Option<&[u8]> {
        self.key.clone().map(|range| &self.buffer[range])
    }

    /// The payload (Kafka: value). `None` for a tombstone, which is not the same as an empty payload.
    #[must_use]
    pub fn payload(&self) -> Option<&[u8]> {
        self.payload.clone().map(|range| &self.buffer[range])
    }

    /// The payload without copying it.
    #[must_use]
    pub fn payload_bytes(&self) -> Option<Bytes> {
        self.payload.clone().map(|range| self.buffer.slice(range))
    }

    /// The headers in the order sent, repeats included; nothing in them is decoded.
    #[must_use]
    pub fn headers(&self) -> Headers {
        Headers::encoded(self.buffer.slice(self.headers.clone()))
    }

    /// Where the message stands in its topic; `None` for sources without offsets.
    #[must_use]
    pub fn position(&self) -> Option<&Position> {
        self.position.as_ref()
    }

    /// The record's time in milliseconds since 1970, as its producer or broker set it.
    ///
    /// Never judge age by it: producers send what they like.
    #[must_use]
    pub fn timestamp(&self) -> Option<i64> {
        self.timestamp
    }

    /// How many bytes of memory the message holds.
    #[must_use]
    pub fn size(&self) -> usize {
        self.buffer.len()
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("position", &self.position)
            .field("key", &self.key().map(<[u8]>::escape_ascii).map(|bytes| bytes.to_string()))
            .field("payload_bytes", &self.payload.as_ref().map(ExactSizeIterator::len))
            .field("headers", &self.headers())
            .finish_non_exhaustive()
    }
}

/// Fills a [`Message`].
#[derive(Clone, Debug, Default)]
pub struct MessageBuilder {
    buffer: BytesMut,
    key: Option<Range<usize>>,
    payload: Option<Range<usize>>,
    headers: Vec<u8>,
    position: Option<Position>,
    timestamp: Option<i64>,
}

impl MessageBuilder {
    /// Makes room for `bytes` at once, so that filling allocates only here.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self { buffer: BytesMut::with_capacity(bytes), ..Self::default() }
    }

    /// Sets the message key.
    #[must_use]
    pub fn key(mut self, key: impl AsRef<[u8]>) -> Self {
        self.key = Some(self.push(key.as_ref()));
        self
    }

    /// Sets the payload.
    #[must_use]
    pub fn payload(mut self, payload: impl AsRef<[u8]>) -> Self {
        self.payload = Some(self.push(payload.as_ref()));
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Self {
        headers::encode(&mut self.headers, name.as_ref(), Some(value.as_ref()));
        self
    }

    /// Adds a header whose value is null.
    #[must_use]
    pub fn null_header(mut self, name: impl AsRef<[u8]>) -> Self {
        headers::encode(&mut self.headers, name.as_ref(), None);
        self
    }

    /// Sets where the message stands.
    #[must_use]
    pub fn position(mut self, position: Position) -> Self {
        self.position = Some(position);
        self
    }

    /// Sets the record's time, in milliseconds since 1970.
    #[must_use]
    pub fn timestamp(mut self, milliseconds: i64) -> Self {
        self.timestamp = Some(milliseconds);
        self
    }

    /// The message.
    #[must_use]
    pub fn build(mut self) -> Message {
        let headers = std::mem::take(&mut self.headers);
        let headers = self.push(&headers);
        Message {
            buffer: self.buffer.freeze(),
            key: self.key,
            payload: self.payload,
            headers,
            position: self.position,
            timestamp: self.timestamp,
        }
    }

    fn push(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.buffer.len();
        self.buffer.put_slice(bytes);
        start..self.buffer.len()
    }
}

/// Where a message stands in a Kafka log.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Position {
    /// The topic's name.
    pub topic: Arc<str>,
    /// The partition's number.
    pub partition: i32,
    /// The record's offset.
    pub offset: i64,
}

impl Position {
    /// A position.
    #[must_use]
    pub fn new(topic: impl Into<Arc<str>>, partition: i32, offset: i64) -> Self {
        Self { topic: topic.into(), partition, offset }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]@{}", self.topic, self.partition, self.offset)
    }
}
