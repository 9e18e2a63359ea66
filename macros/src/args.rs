//! The syntax of the attribute: `name = value, …`, each name known and given once.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::parse::{Parse, ParseStream, Parser};
use syn::{Error, Ident, LitStr, Result, Token};

use crate::errors::Errors;
use crate::spelling::{nearest, suggest};

const OPTIONS: [&str; 9] = [
    "consumer",
    "key",
    "order",
    "attempts",
    "timeout",
    "batch",
    "start_at",
    "on_tombstone",
    "on_out_of_range",
];

/// What was given to the attribute, as written: values keep their tokens until they are asked for.
pub struct Args {
    given: Vec<Arg>,
    /// Options that misspelt names probably stand for.
    misspelt: Vec<&'static str>,
}

struct Arg {
    name: Ident,
    /// `None` if it could not be made out, which has been reported.
    value: Option<TokenStream>,
}

impl Args {
    pub fn parse(tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut args = Self { given: Vec::new(), misspelt: Vec::new() };
        let parser = |input: ParseStream| {
            while !input.is_empty() {
                let tokens = expression(input)?;
                let comma = input.parse::<Option<Token![,]>>()?;
                if tokens.is_empty() {
                    errors.report(comma, "expected `name = value` before this comma");
                } else if let Some(arg) = errors.keep(arg.parse2(tokens)) {
                    args.add(arg, errors);
                }
            }
            Ok(())
        };
        let parsed = parser.parse2(ungrouped(tokens));
        errors.keep(parsed);
        args
    }

    fn add(&mut self, arg: Arg, errors: &mut Errors) {
        let name = arg.name.to_string();
        if !OPTIONS.contains(&name.as_str()) {
            let suggestion = suggest(&name, &OPTIONS);
            errors.report(arg.name, format!("`{name}` is not an option of `#[idempotent]`: {suggestion}"));
            self.misspelt.extend(nearest(&name, &OPTIONS));
        } else if self.given.iter().any(|other| other.name == name) {
            errors.report(arg.name, format!("`{name}` is given twice"));
        } else {
            if arg.value.is_none() {
                errors.report(&arg.name, format!("`{name}` has no value: write `{name} = …`"));
            }
            self.given.push(arg);
        }
    }

    /// Whether the option was given, in whatever shape.
    pub fn has(&self, name: &str) -> bool {
        self.given.iter().any(|arg| arg.name == name) || self.misspelt.contains(&name)
    }

    /// Reads the value of an option that was given.
    pub fn read<T>(
        &self,
        name: &str,
        parse: impl FnOnce(ParseStream) -> Result<T>,
        errors: &mut Errors,
    ) -> Option<T> {
        let value = self.given.iter().find(|arg| arg.name == name)?.value.clone()?;
        let parser = |input: ParseStream| {
            let value = parse(input)?;
            if input.is_empty() { Ok(value) } else { Err(input.error("expected a comma before this")) }
        };
        errors.keep(parser.parse2(value))
    }
}

fn arg(input: ParseStream) -> Result<Arg> {
    let Ok(name) = input.parse::<Ident>() else {
        let tokens: TokenStream = input.parse()?;
        return Err(Error::new_spanned(
            tokens,
            "expected `name = value`, as in `consumer = \"wallet-credits\"`",
        ));
    };
    let assigned = input.parse::<Option<Token![=]>>()?.is_some();
    let value: TokenStream = input.parse()?;
    Ok(Arg { name, value: (assigned && !value.is_empty()).then_some(value) })
}

/// Dissolves the invisible groups that `macro_rules!` puts around `$x:literal`, `$x:expr` and the like,
/// so that what it passes on reads as if it were written here.
pub fn ungrouped(tokens: TokenStream) -> TokenStream {
    tokens
        .into_iter()
        .flat_map(|token| match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => ungrouped(group.stream()),
            TokenTree::Group(group) => {
                let mut inner = proc_macro2::Group::new(group.delimiter(), ungrouped(group.stream()));
                inner.set_span(group.span());
                TokenTree::Group(inner).into()
            }
            token => token.into(),
        })
        .collect()
}

/// A string literal and nothing else; `what` names it in the message.
pub fn string(input: ParseStream, what: &str) -> Result<LitStr> {
    let tokens = expression(input)?;
    syn::parse2(tokens.clone())
        .map_err(|_| Error::new_spanned(tokens, format!("{what} must be a string literal")))
}

/// One expression's tokens: everything up to a comma.
pub fn expression(input: ParseStream) -> Result<TokenStream> {
    let mut tokens = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        tokens.extend([TokenTree::parse(input)?]);
    }
    Ok(tokens)
}
