//! `#[idempotent]`.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod args;
mod duration;
mod errors;
mod expand;
mod fallback;
mod function;
mod handler;
mod key;
mod model;
mod pointer;
mod setting;
mod spelling;
mod types;

use proc_macro::TokenStream;

/// x
#[proc_macro_attribute]
pub fn idempotent(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand::idempotent(attribute.into(), &item.into()).into()
}

/// Puts the generated implementation behind the struct that carries it. Not public API.
#[doc(hidden)]
#[proc_macro_attribute]
pub fn beside(implementation: TokenStream, mut declaration: TokenStream) -> TokenStream {
    declaration.extend(implementation);
    declaration
}
