//! The key language: `header("x")`, `json("/a")`, `uuid(…)`, tuples.

use std::fmt;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::ext::IdentExt as _;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Ident, LitStr, Path, Result, Token, parenthesized, token};

use crate::args::string;
use crate::pointer;
use crate::spelling::suggest;

const FORMS: [&str; 7] = ["header", "json", "message_key", "cloudevents", "position", "uuid", "with"];

/// Where a message's key comes from, checked.
pub enum Key {
    Header(LitStr),
    Json(LitStr),
    /// The message's own.
    OfMessage,
    CloudEvents,
    Position,
    Uuid(Box<Key>),
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
            "json" => argument(input, &form, "\"/order_id\"", json),
            "uuid" => argument(input, &form, "header(\"event_id\")", uuid),
            "with" => argument(input, &form, "path::to::function", with),
            "message_key" => bare(input, &form, Self::OfMessage),
            "cloudevents" => bare(input, &form, Self::CloudEvents),
            "position" => bare(input, &form, Self::Position),
            other => {
                let message = format!("`{other}` is not a key: {}", suggest(other, &FORMS));
                Err(Error::new(form.span(), message))
            }
        }
    }
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
        Key::Uuid(_) => "it is a UUID already",
        Key::Header(_) | Key::Json(_) | Key::OfMessage | Key::With(_) => {
            return Ok(Key::Uuid(Box::new(inner)));
        }
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
            Self::Json(pointer) => quote!(::handstamp::KeySource::Json(#pointer)),
            Self::OfMessage => quote!(::handstamp::KeySource::MessageKey),
            Self::CloudEvents => quote!(::handstamp::KeySource::CloudEvents),
            Self::Position => quote!(::handstamp::KeySource::Position),
            Self::Uuid(inner) => quote!(::handstamp::KeySource::Uuid(&#inner)),
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
            Self::Json(pointer) => write!(f, "json({:?})", pointer.value()),
            Self::OfMessage => f.write_str("message_key"),
            Self::CloudEvents => f.write_str("cloudevents"),
            Self::Position => f.write_str("position"),
            Self::Uuid(inner) => write!(f, "uuid({inner})"),
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
