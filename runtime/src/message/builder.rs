use std::ops::Range;

use super::{Message, Position, headers};

/// Fills a [`Message`], in any order: everything goes straight into the one buffer.
#[derive(Clone, Debug, Default)]
pub struct MessageBuilder {
    buffer: Vec<u8>,
    key: Option<Range<usize>>,
    payload: Option<Range<usize>>,
    headers: Range<usize>,
    position: Option<Position>,
    timestamp: Option<i64>,
}

impl MessageBuilder {
    /// Makes room for `bytes` at once, so that filling allocates only here.
    ///
    /// The key and the payload take what they have, a header 8 bytes more than its name and its value.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self { buffer: Vec::with_capacity(bytes), ..Self::default() }
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
    ///
    /// # Panics
    /// If its name or its value has 4 GiB or more.
    #[must_use]
    pub fn header(self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Self {
        self.push_header(name.as_ref(), Some(value.as_ref()))
    }

    /// Adds a header whose value is null.
    #[must_use]
    pub fn null_header(self, name: impl AsRef<[u8]>) -> Self {
        self.push_header(name.as_ref(), None)
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
    pub fn build(self) -> Message {
        Message {
            buffer: self.buffer.into(),
            key: self.key,
            payload: self.payload,
            headers: self.headers,
            position: self.position,
            timestamp: self.timestamp,
        }
    }

    fn push(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(bytes);
        start..self.buffer.len()
    }

    fn push_header(mut self, name: &[u8], value: Option<&[u8]>) -> Self {
        // Headers are read as one run of bytes: those from before a key or a payload are taken along.
        if self.headers.end != self.buffer.len() {
            let start = self.buffer.len();
            self.buffer.extend_from_within(self.headers);
            self.headers = start..start;
        }
        headers::encode(&mut self.buffer, name, value);
        self.headers.end = self.buffer.len();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_known_size_is_filled_without_growing() {
        let size = 3 + 5 + (8 + 2 + 1) + (8 + 1);
        let builder = MessageBuilder::with_capacity(size);
        let buffer = builder.buffer.as_ptr();
        let message = builder.key("key").payload("value").header("ab", "c").null_header("d").build();
        assert_eq!((message.buffer.as_ptr(), message.size()), (buffer, size));
    }

    #[test]
    fn the_order_of_filling_makes_no_difference() {
        let headers_last = Message::builder().key("k").payload("p").header("a", "1").header("b", "2").build();
        let mixed = Message::builder().header("a", "1").payload("p").header("b", "2").key("k").build();
        assert_eq!(
            (mixed.key(), mixed.payload(), mixed.headers()),
            (headers_last.key(), headers_last.payload(), headers_last.headers())
        );
    }

    #[test]
    fn a_null_payload_is_not_an_empty_one() {
        assert_eq!(Message::builder().build().payload(), None);
        assert_eq!(Message::builder().payload("").build().payload(), Some(&[][..]));
    }

    #[test]
    fn a_clone_shares_the_bytes() {
        let message = Message::builder().payload("value").build();
        assert_eq!(message.clone().buffer.as_ptr(), message.buffer.as_ptr());
    }
}
