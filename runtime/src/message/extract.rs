use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::{DecodeError, Headers, Message, Position};
use crate::failure::BoxError;
use crate::key::Key;

/// A value read from one message: what a handler can take as an argument.
///
/// Implement it for your own types to read them in one place; an error means that the message can
/// never be handled, so it is parked at once and not retried.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read from a message",
    label = "not an extractor",
    note = "take `Json<T>` where `T: serde::Deserialize`, or implement `handstamp::FromMessage` for it"
)]
pub trait FromMessage: Sized + Send {
    /// Whether a message without a payload (a tombstone) can never give this value. The consumer's
    /// `on_tombstone` then decides before the handler is called.
    const NEEDS_PAYLOAD: bool = false;

    /// Reads the value.
    ///
    /// # Errors
    /// If the message does not hold such a value.
    fn from_message(message: &Message, key: &Key) -> Result<Self, BoxError>;
}

/// The payload, decoded as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Json<T>(pub T);

/// The payload, undecoded and not copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload(pub Bytes);

/// The payload as UTF-8 text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(pub String);

/// The message's idempotency key in readable form, as [`Key`] displays it: for a UUID the hyphenated
/// lower case, for text the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventId(pub String);

/// A part of what `Worker::builder(…).state(…)` was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State<T>(pub T);

impl<T: DeserializeOwned + Send> FromMessage for Json<T> {
    const NEEDS_PAYLOAD: bool = true;

    fn from_message(message: &Message, _: &Key) -> Result<Self, BoxError> {
        let payload = message.payload().ok_or(DecodeError::NoPayload)?;
        let value =
            serde_json::from_slice(payload).map_err(|error| DecodeError::json::<T>(payload, error))?;
        Ok(Self(value))
    }
}

impl FromMessage for Payload {
    const NEEDS_PAYLOAD: bool = true;

    fn from_message(message: &Message, _: &Key) -> Result<Self, BoxError> {
        Ok(Self(message.payload_bytes().ok_or(DecodeError::NoPayload)?))
    }
}

impl FromMessage for Text {
    const NEEDS_PAYLOAD: bool = true;

    fn from_message(message: &Message, _: &Key) -> Result<Self, BoxError> {
        let payload = message.payload().ok_or(DecodeError::NoPayload)?;
        let text = std::str::from_utf8(payload).map_err(|error| DecodeError::not_text(payload, error))?;
        Ok(Self(text.to_owned()))
    }
}

impl FromMessage for Headers {
    fn from_message(message: &Message, _: &Key) -> Result<Self, BoxError> {
        Ok(message.headers())
    }
}

impl FromMessage for EventId {
    fn from_message(_: &Message, key: &Key) -> Result<Self, BoxError> {
        Ok(Self(key.to_string()))
    }
}

impl FromMessage for Position {
    fn from_message(message: &Message, _: &Key) -> Result<Self, BoxError> {
        message.position().cloned().ok_or_else(|| "the message's source has no positions".into())
    }
}

impl FromMessage for Message {
    fn from_message(message: &Message, _: &Key) -> Result<Self, BoxError> {
        Ok(message.clone())
    }
}

/// `None` for a message without a payload (a tombstone).
impl<T: FromMessage> FromMessage for Option<T> {
    fn from_message(message: &Message, key: &Key) -> Result<Self, BoxError> {
        match message.payload() {
            None if T::NEEDS_PAYLOAD => Ok(None),
            _ => T::from_message(message, key).map(Some),
        }
    }
}
