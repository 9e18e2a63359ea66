//! A handler and its options, all checked: what is here can be expanded without further questions.

use proc_macro2::{Span, TokenStream};
use syn::parse::{Parse as _, ParseStream};
use syn::{Error, LitStr};

use crate::args::{Args, string};
use crate::errors::Errors;
use crate::function::Function;
use crate::handler::Handler;
use crate::key::Key;
use crate::setting::Setting;

const REQUIRED: [(&str, &str); 2] = [
    ("consumer", "add the name its messages are remembered under, e.g. `consumer = \"wallet-credits\"`"),
    ("key", "add what makes two deliveries the same message, e.g. `key = header(\"event_id\")`"),
];
const LONGEST_NAME: usize = 200;

pub struct Model {
    pub consumer: LitStr,
    pub key: Key,
    pub settings: Vec<Setting>,
    pub handler: Handler,
}

impl Model {
    /// Checks attribute and function, and finds every mistake in both.
    pub fn check(attribute: TokenStream, function: &Function) -> Result<Self, Errors> {
        let mut errors = Errors::default();
        let args = Args::parse(attribute, &mut errors);
        // The attribute's place seen from the function: errors at the bare call site get a note on macros.
        let place = Span::call_site().resolved_at(function.name().span());
        for (name, remedy) in REQUIRED {
            if !args.has(name) {
                errors.report_missing(place, format!("`{name}` is missing: {remedy}"));
            }
        }
        let consumer = args.read("consumer", consumer, &mut errors);
        let key = args.read("key", Key::parse, &mut errors);
        let settings = Setting::read_all(&args, &mut errors);
        let handler = Handler::check(function, &mut errors);
        let model = || Some(Self { consumer: consumer?, key: key?, settings, handler: handler? });
        errors.finish(model())
    }
}

/// The name becomes the Kafka group and part of idempotency keys, so it is kept to what passes everywhere.
fn consumer(input: ParseStream) -> syn::Result<LitStr> {
    let literal = string(input, "`consumer`")?;
    let name = literal.value();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let problem = match name.chars().find(|c| !is_plain(*c)) {
        Some(c) => format!("has the character {c:?} in it"),
        None if name.is_empty() => "is empty".to_owned(),
        None if name.len() > LONGEST_NAME => format!("has {} characters", name.len()),
        None => return Ok(literal),
    };
    let message = format!("the name {problem}: use 1 to {LONGEST_NAME} of a-z, A-Z, 0-9, `.`, `_` and `-`");
    Err(Error::new(literal.span(), message))
}
