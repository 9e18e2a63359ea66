//! What `content_hash` leaves out: `(ignore = ["/trace_id", …])`.

use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::{Error, Ident, LitStr, Result, Token, bracketed, parenthesized, token};

use crate::args::string;
use crate::pointer;

const EXAMPLE: &str = "`content_hash(ignore = [\"/trace_id\"])`";

/// Reads what may stand behind `content_hash`: nothing, or a list of pointers to ignore.
pub fn ignored(input: ParseStream) -> Result<Vec<LitStr>> {
    if !input.peek(token::Paren) {
        return Ok(Vec::new());
    }
    let content;
    let parentheses = parenthesized!(content in input);
    if content.is_empty() {
        let message =
            format!("to hash all of the payload write `content_hash`, to leave fields out {EXAMPLE}");
        return Err(Error::new(parentheses.span.join(), message));
    }
    let expected = format!("expected `ignore = […]`: write e.g. {EXAMPLE}");
    let name: Ident = content.parse().map_err(|error| Error::new(error.span(), &expected))?;
    if name != "ignore" || content.parse::<Token![=]>().is_err() {
        return Err(Error::new(name.span(), expected));
    }
    let pointers = list(&content)?;
    content.parse::<Option<Token![,]>>()?;
    if content.is_empty() {
        Ok(pointers)
    } else {
        Err(content.error("`content_hash` takes `ignore` and nothing else"))
    }
}

/// The form as one would write it in the attribute.
pub fn written(pointers: &[LitStr]) -> String {
    let pointers: Vec<String> = pointers.iter().map(|pointer| format!("{:?}", pointer.value())).collect();
    if pointers.is_empty() {
        "content_hash".to_owned()
    } else {
        format!("content_hash(ignore = [{}])", pointers.join(", "))
    }
}

fn list(input: ParseStream) -> Result<Vec<LitStr>> {
    if !input.peek(token::Bracket) {
        let message = format!("`ignore` is a list of JSON pointers: write e.g. {EXAMPLE}");
        return Err(Error::new(input.span(), message));
    }
    let content;
    let brackets = bracketed!(content in input);
    let pointers = Punctuated::<LitStr, Token![,]>::parse_terminated_with(&content, ignorable)?;
    if pointers.is_empty() {
        return Err(Error::new(brackets.span.join(), "nothing is ignored: write `content_hash`"));
    }
    let pointers: Vec<LitStr> = pointers.into_iter().collect();
    for (index, pointer) in pointers.iter().enumerate() {
        let text = pointer.value();
        let mut outer = pointers.iter().enumerate().filter_map(|(other, outer)| {
            let rest = text.strip_prefix(&outer.value())?;
            (rest.starts_with('/') || rest.is_empty() && other < index).then_some(outer)
        });
        if let Some(outer) = outer.next() {
            let message = format!("{:?} leaves this out already: drop it from the list", outer.value());
            return Err(Error::new(pointer.span(), message));
        }
    }
    Ok(pointers)
}

fn ignorable(input: ParseStream) -> Result<LitStr> {
    let literal = string(input, "a JSON pointer")?;
    let pointer = literal.value();
    if pointer.is_empty() {
        let message = "the empty pointer is the whole payload: without it nothing is left to hash";
        return Err(Error::new(literal.span(), message));
    }
    pointer::check(&pointer).map_err(|message| Error::new(literal.span(), message))?;
    Ok(literal)
}
