//! What identifies a message to a consumer, and where it is read from.

use std::fmt;

use crate::message::Message;

/// Where a handler's key comes from; a constant that `#[idempotent]` writes.
///
/// Its [`Display`](fmt::Display) form is the key's definition, remembered in the database: another
/// definition would make every message new again.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum KeySource {
    /// `header("event_id")`: exactly one header of that name, not null, not empty, UTF-8.
    Header(&'static str),
    /// `json("/order_id")`: a string or an integer literal in the payload, by RFC 6901 pointer.
    Json(&'static str),
    /// `message_key`: the message's own key.
    MessageKey,
    /// `cloudevents`: `source` and `id`, in binary or structured mode.
    CloudEvents,
    /// `position`: topic, partition and offset. Weaker: a producer's re-publish gets a new offset.
    Position,
    /// `uuid(…)`: the inner key as a UUID of 16 bytes, whatever its spelling.
    Uuid(&'static KeySource),
    /// `(…, …)`: several keys together, in order.
    Composite(&'static [KeySource]),
    /// `with(path)`: a function of the user's.
    With(KeyFunction),
}

/// A user's own key function and the path it was named by.
#[derive(Clone, Copy)]
pub struct KeyFunction {
    /// As written in the attribute.
    pub path: &'static str,
    /// Reads the key; an error parks the message.
    pub read: fn(&Message) -> Result<Key, KeyError>,
}

impl fmt::Debug for KeyFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyFunction").field(&self.path).finish()
    }
}

/// What identifies a message to one consumer. Bounded, never empty.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key {
    kind: Kind,
    bytes: Box<[u8]>,
}

/// The first byte of a stored key: keys of different kinds never collide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Kind {
    Uuid = 1,
    Text = 2,
    Bytes = 3,
    Composite = 4,
    Digest = 5,
}

/// Why a message has no usable key. A key is never guessed: the message is parked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KeyError(pub(crate) String);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.kind, self.bytes.escape_ascii())
    }
}
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
