//! What a handler takes by value, of one message or of many.

use super::{FromMessage, Message, State};
use crate::failure::BoxError;
use crate::key::Key;

/// What a handler can take by value: anything [`FromMessage`], a `Vec` of them, or [`State`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read from a message",
    label = "not an extractor",
    note = "take `Json<T>` where `T: serde::Deserialize`, or implement `handstamp::FromMessage` for it"
)]
pub trait Argument: Sized + Send {
    /// What it takes from the state: [`Nothing`] or [`Needs`].
    type Needs: Send + Sync;
    /// What is read of each message.
    type Each: Send;
    /// How many messages it is read from.
    const SPAN: Span;
    /// As [`FromMessage::NEEDS_PAYLOAD`].
    const NEEDS_PAYLOAD: bool;

    /// Reads what there is in one message.
    ///
    /// # Errors
    /// As [`FromMessage::from_message`].
    fn read(message: &Message, key: &Key) -> Result<Self::Each, BoxError>;

    /// The argument of one message; `None` if it has another [`SPAN`](Self::SPAN).
    fn of_one(each: Self::Each, needs: &Self::Needs) -> Option<Self>;

    /// The argument of many messages; `None` if it has another [`SPAN`](Self::SPAN).
    fn of_many(each: Vec<Self::Each>, needs: &Self::Needs) -> Option<Self>;
}

/// How many messages an argument is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// However many there are.
    Any,
    /// One.
    One,
    /// All that a transaction holds.
    Many,
}

/// An argument that takes nothing from the state.
#[derive(Clone, Copy, Debug)]
pub struct Nothing;

/// An argument that takes a `T` from the state.
#[derive(Clone, Debug)]
pub struct Needs<T>(T);

impl<T: FromMessage> Argument for T {
    type Needs = Nothing;
    type Each = T;
    const SPAN: Span = Span::One;
    const NEEDS_PAYLOAD: bool = <T as FromMessage>::NEEDS_PAYLOAD;

    fn read(message: &Message, key: &Key) -> Result<T, BoxError> {
        T::from_message(message, key)
    }

    fn of_one(each: T, _: &Nothing) -> Option<T> {
        Some(each)
    }

    fn of_many(_: Vec<T>, _: &Nothing) -> Option<T> {
        None
    }
}

impl<T: FromMessage> Argument for Vec<T> {
    type Needs = Nothing;
    type Each = T;
    const SPAN: Span = Span::Many;
    const NEEDS_PAYLOAD: bool = <T as FromMessage>::NEEDS_PAYLOAD;

    fn read(message: &Message, key: &Key) -> Result<T, BoxError> {
        T::from_message(message, key)
    }

    fn of_one(_: T, _: &Nothing) -> Option<Self> {
        None
    }

    fn of_many(each: Self, _: &Nothing) -> Option<Self> {
        Some(each)
    }
}

impl<T: Clone + Send + Sync> Argument for State<T> {
    type Needs = Needs<T>;
    type Each = ();
    const SPAN: Span = Span::Any;
    const NEEDS_PAYLOAD: bool = false;

    fn read(_: &Message, _: &Key) -> Result<(), BoxError> {
        Ok(())
    }

    fn of_one((): (), needs: &Needs<T>) -> Option<Self> {
        Some(Self(needs.0.clone()))
    }

    fn of_many(_: Vec<()>, needs: &Needs<T>) -> Option<Self> {
        Some(Self(needs.0.clone()))
    }
}

/// What an argument becomes that its `#[cfg(…)]` removes.
impl Argument for () {
    type Needs = Nothing;
    type Each = ();
    const SPAN: Span = Span::Any;
    const NEEDS_PAYLOAD: bool = false;

    fn read(_: &Message, _: &Key) -> Result<(), BoxError> {
        Ok(())
    }

    fn of_one((): (), _: &Nothing) -> Option<()> {
        Some(())
    }

    fn of_many(_: Vec<()>, _: &Nothing) -> Option<()> {
        Some(())
    }
}

/// All of a handler's arguments, as a list: `(A, (B, ()))`.
pub trait Arguments: Sized + Send {
    /// What all of them take from the state.
    type Needs: Send + Sync;
    /// What is read of each message.
    type Each: Send;
    /// How many messages the handler is called for at a time.
    const SPAN: Span;
    /// Whether any of them needs a payload.
    const NEEDS_PAYLOAD: bool;

    /// Reads what there is in one message, in order.
    ///
    /// # Errors
    /// That of the first argument that fails.
    fn read(message: &Message, key: &Key) -> Result<Self::Each, BoxError>;

    /// As [`Argument::of_one`].
    fn of_one(each: Self::Each, needs: &Self::Needs) -> Option<Self>;

    /// As [`Argument::of_many`].
    fn of_many(each: Vec<Self::Each>, needs: &Self::Needs) -> Option<Self>;
}

impl Arguments for () {
    type Needs = ();
    type Each = ();
    const SPAN: Span = Span::Any;
    const NEEDS_PAYLOAD: bool = false;

    fn read(_: &Message, _: &Key) -> Result<(), BoxError> {
        Ok(())
    }

    fn of_one((): (), (): &()) -> Option<()> {
        Some(())
    }

    fn of_many(_: Vec<()>, (): &()) -> Option<()> {
        Some(())
    }
}

impl<A: Argument, R: Arguments> Arguments for (A, R) {
    type Needs = (A::Needs, R::Needs);
    type Each = (A::Each, R::Each);
    const SPAN: Span = A::SPAN.and(R::SPAN);
    const NEEDS_PAYLOAD: bool = A::NEEDS_PAYLOAD || R::NEEDS_PAYLOAD;

    fn read(message: &Message, key: &Key) -> Result<Self::Each, BoxError> {
        Ok((A::read(message, key)?, R::read(message, key)?))
    }

    fn of_one((first, rest): Self::Each, needs: &Self::Needs) -> Option<Self> {
        Some((A::of_one(first, &needs.0)?, R::of_one(rest, &needs.1)?))
    }

    fn of_many(each: Vec<Self::Each>, needs: &Self::Needs) -> Option<Self> {
        let (first, rest) = each.into_iter().unzip();
        Some((A::of_many(first, &needs.0)?, R::of_many(rest, &needs.1)?))
    }
}

impl Span {
    /// That of both together.
    ///
    /// # Panics
    /// While the program is compiled, if the arguments do not go together.
    const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Any, span) | (span, Self::Any) => span,
            (Self::One, Self::One) => Self::One,
            (Self::Many, Self::Many) => Self::Many,
            (Self::One, Self::Many) | (Self::Many, Self::One) => {
                panic!("a handler takes one message (`Json<T>`) or many (`Vec<Json<T>>`), not both")
            }
        }
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
