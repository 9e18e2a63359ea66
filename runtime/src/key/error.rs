use super::KeySource;

/// Why a message has no usable key. A key is never guessed: the message is parked, with this as the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KeyError(String);

impl KeyError {
    /// An error with its reason, which ends up beside the parked message.
    #[must_use]
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    /// Says which part of the handler's key it was.
    pub(super) fn at(self, source: &KeySource) -> Self {
        Self(format!("{source}: {}", self.0))
    }
}
