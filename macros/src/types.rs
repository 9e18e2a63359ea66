//! What can be said of a type by its tokens alone.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::Type;

use crate::errors::Errors;

/// What a type's name says it is, whoever declares it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Meant {
    Connection,
    Pool,
    Transaction,
    /// What a handler records in that is no `async fn`.
    Effects,
}

/// The type without the parentheses and the invisible groups of `macro_rules!` around it.
pub fn peeled(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => peeled(&group.elem),
        Type::Paren(paren) => peeled(&paren.elem),
        other => other,
    }
}

/// Recognises a connection, or what is often mistaken for one, by its name, borrowed or not.
pub fn meant(ty: &Type) -> Option<Meant> {
    let path = match peeled(ty) {
        Type::Reference(reference) => return meant(&reference.elem),
        Type::Path(path) => path,
        _ => return None,
    };
    match path.path.segments.last()?.ident.to_string().as_str() {
        "PgConnection" | "SqliteConnection" | "Inbox" => Some(Meant::Connection),
        "PgPool" | "SqlitePool" | "Pool" => Some(Meant::Pool),
        "Effects" => Some(Meant::Effects),
        "PgTransaction" | "SqliteTransaction" | "Transaction" => Some(Meant::Transaction),
        _ => None,
    }
}

/// How many messages an argument is read from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Messages {
    One,
    Many,
}

/// How many messages an argument is read from, where its name says so. What is behind other names, types decide.
pub fn messages(ty: &Type) -> Option<Messages> {
    let Type::Path(path) = peeled(ty) else { return None };
    match path.path.segments.last()?.ident.to_string().as_str() {
        "Vec" => Some(Messages::Many),
        "Json" | "Payload" | "Text" | "Headers" | "EventId" | "Position" | "Message" => Some(Messages::One),
        _ => None,
    }
}

/// Reports what an associated type cannot hold: `impl Trait`, and lifetimes other than `'static`.
pub fn check_concrete(ty: &Type, errors: &mut Errors) {
    let tokens = flat(ty.to_token_stream());
    if let Some(token) = tokens.iter().find(|token| is(token, "impl")) {
        errors.report(token, "a handler's types are concrete: name the type instead of `impl …`");
    }
    // Function pointers and trait objects may have lifetimes of their own.
    if tokens.iter().any(|token| ["fn", "for", "dyn"].iter().any(|word| is(token, word))) {
        return;
    }
    let message =
        "a handler's types have no lifetimes: take what owns its data, e.g. `String` instead of `&str`";
    let following = tokens.iter().skip(1).map(Some).chain([None]);
    for (token, next) in tokens.iter().zip(following) {
        let quoted = next.is_some_and(|next| is(next, "'"));
        let elsewhere = next.is_some_and(|next| !is(next, "static"));
        if is(token, "&") && !quoted {
            errors.report(token, message);
        } else if is(token, "'") && elsewhere {
            errors.report(quote!(#token #next), message);
        }
    }
}

fn is(token: &TokenTree, text: &str) -> bool {
    match token {
        TokenTree::Ident(ident) => ident == text,
        TokenTree::Punct(punct) => text.starts_with(punct.as_char()) && text.len() == 1,
        TokenTree::Group(_) | TokenTree::Literal(_) => false,
    }
}

/// The tokens with those inside groups among them.
fn flat(tokens: TokenStream) -> Vec<TokenTree> {
    tokens
        .into_iter()
        .flat_map(|token| match token {
            TokenTree::Group(group) => flat(group.stream()),
            token => vec![token],
        })
        .collect()
}
