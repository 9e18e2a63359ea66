//! The options beyond `consumer` and `key`: `order`, `attempts`, `timeout`, `batch` and what to do in certain cases.

use std::fmt;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::parse::ParseStream;
use syn::{Error, Ident, LitInt, LitStr, Result, parse2};

use crate::args::Args;
use crate::duration;
use crate::errors::Errors;

const DAY_MS: u64 = 86_400_000;
/// Their keys go to the database in one statement.
const MOST_IN_A_BATCH: usize = 10_000;

/// An option that was given, checked. What was not given is left to the runtime's default.
pub enum Setting {
    Order(Choice),
    Attempts(u32),
    TimeoutMs(u64),
    Batch(usize),
    StartAt(Choice),
    OnTombstone(Choice),
    OnOutOfRange(Choice),
}

/// A word of the attribute and the variant that it stands for.
#[derive(Clone, Copy)]
pub struct Choice {
    word: &'static str,
    variant: &'static str,
}

const PARTITION: Choice = Choice { word: "partition", variant: "Partition" };
const KEY: Choice = Choice { word: "key", variant: "Key" };
const NONE: Choice = Choice { word: "none", variant: "None" };
const EARLIEST: Choice = Choice { word: "earliest", variant: "Earliest" };
const LATEST: Choice = Choice { word: "latest", variant: "Latest" };
const SKIP: Choice = Choice { word: "skip", variant: "Skip" };
const PARK: Choice = Choice { word: "park", variant: "Park" };
const STOP: Choice = Choice { word: "stop", variant: "Stop" };

impl Setting {
    pub fn read_all(args: &Args, errors: &mut Errors) -> Vec<Self> {
        let order = |input: ParseStream| choice(input, "order", [PARTITION, KEY, NONE]);
        let start_at = |input: ParseStream| choice(input, "start_at", [EARLIEST, LATEST]);
        let on_tombstone = |input: ParseStream| choice(input, "on_tombstone", [SKIP, PARK]);
        let on_out_of_range = |input: ParseStream| choice(input, "on_out_of_range", [STOP, EARLIEST]);
        [
            args.read("order", order, errors).map(Self::Order),
            args.read("attempts", attempts, errors).map(Self::Attempts),
            args.read("timeout", timeout, errors).map(Self::TimeoutMs),
            args.read("batch", batch, errors).map(Self::Batch),
            args.read("start_at", start_at, errors).map(Self::StartAt),
            args.read("on_tombstone", on_tombstone, errors).map(Self::OnTombstone),
            args.read("on_out_of_range", on_out_of_range, errors).map(Self::OnOutOfRange),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

fn attempts(input: ParseStream) -> Result<u32> {
    let tokens: TokenStream = input.parse()?;
    parse2::<LitInt>(tokens.clone())
        .and_then(|literal| literal.base10_parse())
        .ok()
        .filter(|attempts| *attempts >= 1)
        .ok_or_else(|| Error::new_spanned(tokens, "`attempts` is a whole number, 1 or more"))
}

fn batch(input: ParseStream) -> Result<usize> {
    let tokens: TokenStream = input.parse()?;
    parse2::<LitInt>(tokens.clone())
        .and_then(|literal| literal.base10_parse())
        .ok()
        .filter(|messages| (1..=MOST_IN_A_BATCH).contains(messages))
        .ok_or_else(|| {
            let message = format!(
                "`batch` is how many messages one transaction may hold: a whole number from 1 (each on its own) to \
                 {MOST_IN_A_BATCH}"
            );
            Error::new_spanned(tokens, message)
        })
}

fn timeout(input: ParseStream) -> Result<u64> {
    let tokens: TokenStream = input.parse()?;
    let Ok(literal) = parse2::<LitStr>(tokens.clone()) else {
        let message = "`timeout` is a string with a number and a unit: write e.g. `\"30 seconds\"`";
        return Err(Error::new_spanned(tokens, message));
    };
    let error = |message: &str| Error::new(literal.span(), message);
    match duration::milliseconds(&literal.value()) {
        Ok(0) => Err(error("a handler needs more than no time at all: write e.g. `\"30 seconds\"`")),
        Ok(milliseconds) if milliseconds > DAY_MS => {
            Err(error("a handler's transaction may stay open for 1 day at the most"))
        }
        Ok(milliseconds) => Ok(milliseconds),
        Err(message) => Err(error(&format!("`timeout` {message}"))),
    }
}

fn choice<const N: usize>(input: ParseStream, option: &str, choices: [Choice; N]) -> Result<Choice> {
    let tokens: TokenStream = input.parse()?;
    let word = parse2::<Ident>(tokens.clone()).map(|word| word.to_string()).unwrap_or_default();
    choices.into_iter().find(|choice| choice.word == word).ok_or_else(|| {
        let words = choices.map(|choice| format!("`{}`", choice.word));
        let (last, others) =
            words.split_last().map_or(("", &[][..]), |(last, others)| (last.as_str(), others));
        Error::new_spanned(tokens, format!("`{option}` is one of the words {} and {last}", others.join(", ")))
    })
}

/// A call on the runtime's `Options`.
impl ToTokens for Setting {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.extend(match self {
            Self::Order(choice) => quote!(.order(::handstamp::Order::#choice)),
            Self::Attempts(attempts) => quote!(.attempts(#attempts)),
            Self::TimeoutMs(milliseconds) => quote!(.timeout_ms(#milliseconds)),
            Self::Batch(messages) => quote!(.batch(#messages)),
            Self::StartAt(choice) => quote!(.start_at(::handstamp::StartAt::#choice)),
            Self::OnTombstone(choice) => quote!(.on_tombstone(::handstamp::OnTombstone::#choice)),
            Self::OnOutOfRange(choice) => quote!(.on_out_of_range(::handstamp::OnOutOfRange::#choice)),
        });
    }
}

impl ToTokens for Choice {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        Ident::new(self.variant, Span::call_site()).to_tokens(tokens);
    }
}

/// The option as one would write it in the attribute.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Order(choice) => write!(f, "order = {}", choice.word),
            Self::Attempts(attempts) => write!(f, "attempts = {attempts}"),
            Self::TimeoutMs(milliseconds) => write!(f, "timeout = \"{milliseconds} ms\""),
            Self::Batch(messages) => write!(f, "batch = {messages}"),
            Self::StartAt(choice) => write!(f, "start_at = {}", choice.word),
            Self::OnTombstone(choice) => write!(f, "on_tombstone = {}", choice.word),
            Self::OnOutOfRange(choice) => write!(f, "on_out_of_range = {}", choice.word),
        }
    }
}
