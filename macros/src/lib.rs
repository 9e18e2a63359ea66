//! t
use proc_macro::TokenStream;
/// t
#[proc_macro_attribute]
pub fn idempotent(_: TokenStream, item: TokenStream) -> TokenStream {
    item
}
