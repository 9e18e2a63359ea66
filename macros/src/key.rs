//! The key language: `header("x")`, `json("/a")`, `uuid(…)`, tuples.

use std::fmt;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::ext::IdentExt as _;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Ident, LitStr, Path, Result, Token, parenthesized, token};

use crate::args::string;
use crate::ignored::{self, ignored};
use crate::pointer;
use crate::recipe::RECIPES;
use crate::spelling::suggest;

const FORMS: [&str; 10] = [
    "header",
    "http_header",
    "json",
    "message_key",
    "cloudevents",
    "content_hash",
    "position",
    "uuid",
    "unquoted",
    "with",
];

/// Where a message's key comes from, checked.
pub enum Key {
    Header(LitStr),
    /// A header whose name may be spelt in any letter case.
    HttpHeader(LitStr),
    Json(LitStr),
    /// The message's own.
    OfMessage,
    CloudEvents,
    /// Of all of the payload but these pointers.
    ContentHash(Vec<LitStr>),
    Position,
    Uuid(Box<Key>),
    /// Out of the JSON string that it may be in.
    Unquoted(Box<Key>),
    With(Path),
    /// Two or more, none of them a composite itself.
    Composite(Vec<Key>),
}

impl Parse for Key {
    fn parse(input: ParseStream) -> Result<Self> {
        if input.peek(token::Paren) {
            return tuple(input);
        }
        let form: Ident = input.call(Ident::parse_any).map_err(|error| {
            Error::new(error.span(), "expected a key, as in `header(\"event_id\")` or `json(\"/order_id\")`")
        })?;
        match form.to_string().as_str() {
            "header" => argument(input, &form, "\"event_id\"", header),
            "http_header" => argument(input, &form, "\"X-Request-Id\"", http_header),
            "json" => argument(input, &form, "\"/order_id\"", json),
            "uuid" => argument(input, &form, "header(\"event_id\")", uuid),
            "unquoted" => argument(input, &form, "header(\"event_id\")", unquoted),
            "with" => argument(input, &form, "path::to::function", with),
            "message_key" => bare(input, &form, Self::OfMessage),
            "cloudevents" => bare(input, &form, Self::CloudEvents),
            "position" => bare(input, &form, Self::Position),
            "content_hash" => ignored(input).map(Self::ContentHash),
            other => match RECIPES.iter().find(|(word, _)| *word == other) {
                Some((_, written)) => bare(input, &form, syn::parse_str(written)?),
                None => Err(unknown(&form, other)),
            },
        }
    }
}

fn unknown(form: &Ident, word: &str) -> Error {
    let known: Vec<&str> = FORMS.into_iter().chain(RECIPES.map(|(word, _)| word)).collect();
    Error::new(form.span(), format!("`{word}` is not a key: {}", suggest(word, &known)))
}

/// Parses what stands in parentheses behind a form's name.
fn argument(
    input: ParseStream,
    form: &Ident,
    example: &str,
    parse: fn(ParseStream) -> Result<Key>,
) -> Result<Key> {
    let message = format!("`{form}` takes an argument: write e.g. `{form}({example})`");
    if !input.peek(token::Paren) {
        return Err(Error::new(form.span(), message));
    }
    let content;
    let parentheses = parenthesized!(content in input);
    if content.is_empty() {
        return Err(Error::new(parentheses.span.join(), message));
    }
    let key = parse(&content)?;
    if content.is_empty() {
        return Ok(key);
    }
    let message =
        format!("`{form}` takes one argument; a key of several parts is a tuple, `({form}(…), {form}(…))`");
    Err(content.error(message))
}

fn bare(input: ParseStream, form: &Ident, key: Key) -> Result<Key> {
    if input.peek(token::Paren) {
        return Err(input.error(format!("`{form}` takes no argument: write `{form}`")));
    }
    Ok(key)
}

fn header(input: ParseStream) -> Result<Key> {
    let name = string(input, "the name of a header")?;
    let text = name.value();
    if text.is_empty() || text.contains('\0') {
        let message = "the name of a header is neither empty nor has a NUL byte in it";
        return Err(Error::new(name.span(), message));
    }
    Ok(Key::Header(name))
}

fn http_header(input: ParseStream) -> Result<Key> {
    let name = string(input, "the name of a header")?;
    // RFC 9110, section 5.6.2.
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let message = match name.value().chars().find(|c| !is_allowed(*c)) {
        Some(c) => format!("HTTP has no headers with {c:?} in their name: write e.g. `\"X-Request-Id\"`"),
        None if name.value().is_empty() => "the name of a header is not empty".to_owned(),
        None => return Ok(Key::HttpHeader(name)),
    };
    Err(Error::new(name.span(), message))
}

fn json(input: ParseStream) -> Result<Key> {
    let pointers = Punctuated::<Key, Token![,]>::parse_terminated_with(input, |input| {
        let literal = string(input, "a JSON pointer")?;
        pointer::check(&literal.value()).map_err(|message| Error::new(literal.span(), message))?;
        Ok(Key::Json(literal))
    })?;
    Ok(composite(pointers))
}

fn uuid(input: ParseStream) -> Result<Key> {
    let start = input.fork();
    let inner: Key = input.parse()?;
    let reason = match inner {
        Key::Composite(_) => "several parts are not one UUID: put `uuid(…)` around the parts that are",
        Key::CloudEvents => "`cloudevents` is `source` and `id` together, which is not one UUID",
        Key::Position => "a position is not a UUID",
        Key::ContentHash(_) => "a content hash is not a UUID; it is stored in 33 bytes as it is",
        Key::Uuid(_) => "it is a UUID already",
        Key::Header(_)
        | Key::HttpHeader(_)
        | Key::Json(_)
        | Key::OfMessage
        | Key::Unquoted(_)
        | Key::With(_) => return Ok(Key::Uuid(Box::new(inner))),
    };
    Err(Error::new_spanned(start.parse::<TokenStream>()?, reason))
}

fn unquoted(input: ParseStream) -> Result<Key> {
    let start = input.fork();
    let inner: Key = input.parse()?;
    let reason = match inner {
        Key::Header(_) | Key::HttpHeader(_) | Key::OfMessage => return Ok(Key::Unquoted(Box::new(inner))),
        Key::Uuid(inner) => format!("quotes come off before a UUID is read: write `uuid(unquoted({inner}))`"),
        Key::Composite(_) => {
            "several parts are not in one pair of quotes: put `unquoted(…)` around the parts that are".to_owned()
        }
        _ => "only the bytes of a header or of the `message_key` may stand in JSON quotes: leave `unquoted` out"
            .to_owned(),
    };
    Err(Error::new_spanned(start.parse::<TokenStream>()?, reason))
}

fn with(input: ParseStream) -> Result<Key> {
    input.call(Path::parse_mod_style).map(Key::With).map_err(|error| {
        let message = "expected the path of a `fn(&Message) -> Result<Key, KeyError>`, without arguments";
        Error::new(error.span(), message)
    })
}

fn tuple(input: ParseStream) -> Result<Key> {
    let content;
    let parentheses = parenthesized!(content in input);
    let parts = Punctuated::<Key, Token![,]>::parse_terminated(&content)?;
    if parts.len() < 2 {
        let message = "a composite key has two parts or more: write a single one without these parentheses";
        return Err(Error::new(parentheses.span.join(), message));
    }
    Ok(composite(parts))
}

/// Composites inside composites say nothing more, so their parts are taken out.
fn composite(parts: impl IntoIterator<Item = Key>) -> Key {
    let mut parts: Vec<Key> = parts
        .into_iter()
        .flat_map(|part| match part {
            Key::Composite(parts) => parts,
            single => vec![single],
        })
        .collect();
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => {
            parts.extend(last);
            Key::Composite(parts)
        }
    }
}

impl ToTokens for Key {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.extend(match self {
            Self::Header(name) => quote!(::handstamp::KeySource::Header(#name)),
            Self::HttpHeader(name) => quote!(::handstamp::KeySource::HttpHeader(#name)),
            Self::Json(pointer) => quote!(::handstamp::KeySource::Json(#pointer)),
            Self::OfMessage => quote!(::handstamp::KeySource::MessageKey),
            Self::CloudEvents => quote!(::handstamp::KeySource::CloudEvents),
            Self::ContentHash(ignored) => quote!(::handstamp::KeySource::ContentHash(&[#(#ignored),*])),
            Self::Position => quote!(::handstamp::KeySource::Position),
            Self::Uuid(inner) => quote!(::handstamp::KeySource::Uuid(&#inner)),
            Self::Unquoted(inner) => quote!(::handstamp::KeySource::Unquoted(&#inner)),
            Self::Composite(parts) => quote!(::handstamp::KeySource::Composite(&[#(#parts),*])),
            Self::With(read) => {
                let path = written(read);
                quote!(::handstamp::KeySource::With(::handstamp::KeyFunction { path: #path, read: #read }))
            }
        });
    }
}

/// The key as one would write it in the attribute.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "header({:?})", name.value()),
            Self::HttpHeader(name) => write!(f, "http_header({:?})", name.value()),
            Self::Json(pointer) => write!(f, "json({:?})", pointer.value()),
            Self::OfMessage => f.write_str("message_key"),
            Self::CloudEvents => f.write_str("cloudevents"),
            Self::ContentHash(ignored) => f.write_str(&ignored::written(ignored)),
            Self::Position => f.write_str("position"),
            Self::Uuid(inner) => write!(f, "uuid({inner})"),
            Self::Unquoted(inner) => write!(f, "unquoted({inner})"),
            Self::With(path) => write!(f, "with({})", written(path)),
            Self::Composite(parts) => {
                let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
                write!(f, "({})", parts.join(", "))
            }
        }
    }
}

fn written(path: &Path) -> String {
    let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    format!("{}{}", path.leading_colon.map_or("", |_| "::"), segments.join("::"))
}

#[cfg(test)]
mod tests {
    use super::{Key, RECIPES};

    #[test]
    fn recipes_stand_for_keys_as_one_would_write_them() {
        for (word, written) in RECIPES {
            let key: Key = syn::parse_str(word).expect(word);
            assert_eq!(key.to_string(), written);
        }
    }
}
