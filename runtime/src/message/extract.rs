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

/// Reads nothing: what an argument becomes that its `#[cfg(…)]` removes.
impl FromMessage for () {
    fn from_message(_: &Message, _: &Key) -> Result<Self, BoxError> {
        Ok(())
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

/// What a handler can take by value: anything [`FromMessage`], or [`State`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read from a message",
    label = "not an extractor",
    note = "take `Json<T>` where `T: serde::Deserialize`, or implement `handstamp::FromMessage` for it"
)]
pub trait Argument: Sized + Send {
    /// What it takes from the state: [`Nothing`] or [`Needs`].
    type Needs: Send + Sync;
    /// As [`FromMessage::NEEDS_PAYLOAD`].
    const NEEDS_PAYLOAD: bool;

    /// Reads the argument.
    ///
    /// # Errors
    /// As [`FromMessage::from_message`].
    fn take(message: &Message, key: &Key, needs: &Self::Needs) -> Result<Self, BoxError>;
}

/// An argument that takes nothing from the state.
#[derive(Clone, Copy, Debug)]
pub struct Nothing;

/// An argument that takes a `T` from the state.
#[derive(Clone, Debug)]
pub struct Needs<T>(T);

impl<T: FromMessage> Argument for T {
    type Needs = Nothing;
    const NEEDS_PAYLOAD: bool = <T as FromMessage>::NEEDS_PAYLOAD;

    fn take(message: &Message, key: &Key, _: &Nothing) -> Result<Self, BoxError> {
        T::from_message(message, key)
    }
}

impl<T: Clone + Send + Sync> Argument for State<T> {
    type Needs = Needs<T>;
    const NEEDS_PAYLOAD: bool = false;

    fn take(_: &Message, _: &Key, needs: &Needs<T>) -> Result<Self, BoxError> {
        Ok(Self(needs.0.clone()))
    }
}

/// All of a handler's arguments, as a list: `(A, (B, ()))`.
pub trait Arguments: Sized + Send {
    /// What all of them take from the state.
    type Needs: Send + Sync;
    /// Whether any of them needs a payload.
    const NEEDS_PAYLOAD: bool;

    /// Reads them in order.
    ///
    /// # Errors
    /// That of the first argument that fails.
    fn take(message: &Message, key: &Key, needs: &Self::Needs) -> Result<Self, BoxError>;
}

impl Arguments for () {
    type Needs = ();
    const NEEDS_PAYLOAD: bool = false;

    fn take(_: &Message, _: &Key, (): &()) -> Result<Self, BoxError> {
        Ok(())
    }
}

impl<A: Argument, R: Arguments> Arguments for (A, R) {
    type Needs = (A::Needs, R::Needs);
    const NEEDS_PAYLOAD: bool = A::NEEDS_PAYLOAD || R::NEEDS_PAYLOAD;

    fn take(message: &Message, key: &Key, needs: &Self::Needs) -> Result<Self, BoxError> {
        Ok((A::take(message, key, &needs.0)?, R::take(message, key, &needs.1)?))
    }
}

/// How a part is taken out of the state; every `Clone` state gives itself.
#[diagnostic::on_unimplemented(
    message = "a handler takes `State<{Self}>`, which the state `{S}` does not hold",
    label = "needs a state that gives `{Self}`",
    note = "call `.state(…)` with a `{Self}` before `.consume(…)`, or implement `FromRef<{S}>` for `{Self}`"
)]
pub trait FromRef<S> {
    /// Takes the part.
    fn from_ref(state: &S) -> Self;
}

impl<T: Clone> FromRef<T> for T {
    fn from_ref(state: &T) -> T {
        state.clone()
    }
}

/// A state that has everything in the list `N`.
pub trait Provides<N> {
    /// Takes the list out of the state.
    fn provide(&self) -> N;
}

impl<S> Provides<()> for S {
    fn provide(&self) {}
}

impl<S> Provides<Nothing> for S {
    fn provide(&self) -> Nothing {
        Nothing
    }
}

impl<S, T: FromRef<S>> Provides<Needs<T>> for S {
    fn provide(&self) -> Needs<T> {
        Needs(T::from_ref(self))
    }
}

impl<S: Provides<A> + Provides<R>, A, R> Provides<(A, R)> for S {
    fn provide(&self) -> (A, R) {
        (self.provide(), self.provide())
    }
}
