//! The item under the attribute, as written. Its body is never parsed.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Ident, Result, Signature, Visibility};

/// A function's head.
pub struct Function {
    attrs: Vec<Attribute>,
    pub vis: Visibility,
    pub sig: Signature,
}

impl Function {
    pub fn parse(item: &TokenStream) -> Result<Self> {
        let parser = |input: ParseStream| {
            let attrs = input.call(Attribute::parse_outer)?;
            let vis = input.parse()?;
            let message = "`#[idempotent]` goes on an `async fn`, or on a `fn` that records `Effects`";
            let sig = input.parse().map_err(|_| input.error(message))?;
            input.parse::<TokenStream>()?;
            Ok(Self { attrs, vis, sig })
        };
        parser.parse2(ungrouped(item))
    }

    pub fn name(&self) -> &Ident {
        &self.sig.ident
    }

    /// Whether it is certain to stand in an `impl` or a `trait`.
    pub fn is_method(&self) -> bool {
        self.sig.receiver().is_some()
    }

    /// A second `#[idempotent]` under the first, which will declare a type of the same name.
    pub fn second_attribute(&self) -> Option<&Attribute> {
        self.attrs
            .iter()
            .find(|attr| attr.path().segments.last().is_some_and(|segment| segment.ident == "idempotent"))
    }
}

/// An item passed on by `macro_rules!` as `$f:item` arrives in an invisible group.
fn ungrouped(item: &TokenStream) -> TokenStream {
    let mut tokens = item.clone().into_iter();
    match (tokens.next(), tokens.next()) {
        (Some(TokenTree::Group(group)), None) if group.delimiter() == Delimiter::None => {
            ungrouped(&group.stream())
        }
        _ => item.clone(),
    }
}
