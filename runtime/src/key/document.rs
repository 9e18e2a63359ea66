use std::fmt::Display;

use super::KeyError;
use crate::message::{DecodeError, Message};

/// A message's payload as JSON text. Its syntax is checked as it is read, not before.
#[derive(Clone, Copy)]
pub(super) struct Document<'a>(&'a str);

impl<'a> Document<'a> {
    pub(super) fn of(message: &'a Message) -> Result<Self, KeyError> {
        let payload = message.payload().ok_or_else(|| KeyError::new("the payload is null (a tombstone)"))?;
        std::str::from_utf8(payload).map(Self).map_err(|error| not_json(payload, &error))
    }

    pub(super) fn text(self) -> &'a str {
        self.0
    }

    /// Why the parser does not take it.
    pub(super) fn not_json(self, error: &dyn Display) -> KeyError {
        not_json(self.0.as_bytes(), error)
    }
}

fn not_json(payload: &[u8], error: &dyn Display) -> KeyError {
    KeyError::new(DecodeError::not_json(payload, error).to_string())
}
