//! Mistakes, collected so that all of them are reported at once.

use std::fmt::Display;

use proc_macro2::Span;
use quote::ToTokens;
use syn::Error;

/// The mistakes found so far, each at its own token.
#[derive(Default)]
pub struct Errors(Vec<Error>);

impl Errors {
    /// Notes a mistake at the tokens that make it.
    pub fn report(&mut self, tokens: impl ToTokens, message: impl Display) {
        self.0.push(Error::new_spanned(tokens, message));
    }

    /// Notes that something is missing there.
    pub fn report_missing(&mut self, place: Span, message: impl Display) {
        self.0.push(Error::new(place, message));
    }

    /// Takes the value out, or notes why there is none.
    pub fn keep<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.0.extend(error)).ok()
    }

    /// The value, if no mistake was noted.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, Self> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            _ => Err(self),
        }
    }
}

impl IntoIterator for Errors {
    type Item = Error;
    type IntoIter = std::vec::IntoIter<Error>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
