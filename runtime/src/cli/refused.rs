use std::fmt;
use std::process::ExitCode;

use crate::failure::Failure;

/// Why a command was not done, in one sentence that says what to do next.
#[derive(Debug)]
pub(super) struct Refused {
    text: String,
    code: u8,
}

impl Refused {
    /// It was understood, but could not be done.
    pub(super) fn failed(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: 1 }
    }

    /// It was not understood, or something is missing from it.
    pub(super) fn usage(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: 2 }
    }

    pub(super) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self::failed(failure.to_string())
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
