//! How bytes become a message.

use bytes::Bytes;
use handstamp::{Headers, Message, MessageBuilder};

/// Two bytes of length, headers in their stored form, and what is left.
pub fn split(bytes: &[u8]) -> (Headers, &[u8]) {
    let (length, rest) = bytes.split_at(bytes.len().min(2));
    let length = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
    let (headers, rest) = rest.split_at(length.min(rest.len()));
    (Headers::encoded(Bytes::copy_from_slice(headers)), rest)
}

/// A message with these headers.
pub fn with_headers(headers: &Headers) -> MessageBuilder {
    headers.iter().fold(Message::builder(), |message, (name, value)| match value {
        Some(value) => message.header(name, value),
        None => message.null_header(name),
    })
}
