//! A message, copied out of whatever delivered it, and where it stood.

mod argument;
mod builder;
mod decode;
mod excerpt;
mod extract;
mod headers;
mod position;

use std::fmt;
use std::ops::Range;

use bytes::Bytes;

pub(crate) use decode::DecodeError;
pub(crate) use excerpt::Excerpt;

pub use argument::{Argument, Arguments, FromRef, Needs, Nothing, Provides, Span};
pub use builder::MessageBuilder;
pub use extract::{EventId, FromMessage, Json, Payload, State, Text};
pub use headers::{Headers, HeadersIter};
pub use position::Position;

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
/// assert_eq!(message.headers().get_all("event_id").count(), 1);
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
