use std::sync::Arc;

use rdkafka::Timestamp;
use rdkafka::message::{BorrowedMessage, Message as _};
use uuid::Uuid;

use super::ffi;
use crate::message::{Message, MessageBuilder, Position};

/// Copies a record out of librdkafka, once, so that its buffer is free at once.
pub(super) fn message(record: &BorrowedMessage<'_>, topic: &Arc<str>, topic_id: Uuid) -> Message {
    let (key, payload) = (record.key(), record.payload());
    let mut size = key.map_or(0, <[u8]>::len) + payload.map_or(0, <[u8]>::len);
    // Two passes over the headers cost less than a buffer that grows.
    let counted = ffi::for_each_header(record, |name, value| {
        size += 8 + name.len() + value.map_or(0, <[u8]>::len);
    });
    if let Err(code) = counted {
        tracing::warn!(
            topic = &**topic, partition = record.partition(), offset = record.offset(), %code,
            "the headers of a record cannot be read: it is handled as a record without headers"
        );
    }
    let mut builder = MessageBuilder::with_capacity(size);
    if let Some(key) = key {
        builder = builder.key(key);
    }
    if let Some(payload) = payload {
        builder = builder.payload(payload);
    }
    let mut filled = Some(builder);
    let _counted_before = ffi::for_each_header(record, |name, value| {
        filled = filled.take().map(|builder| match value {
            Some(value) => builder.header(name, value),
            None => builder.null_header(name),
        });
    });
    let mut builder = filled.unwrap_or_default();
    if let Timestamp::CreateTime(time) | Timestamp::LogAppendTime(time) = record.timestamp() {
        builder = builder.timestamp(time);
    }
    let mut position = Position::new(Arc::clone(topic), record.partition(), record.offset());
    if !topic_id.is_nil() {
        position = position.with_topic_id(topic_id);
    }
    builder.position(position).build()
}
