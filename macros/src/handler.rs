//! A function that can be a handler: what tokens can decide is checked here, types decide the rest.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::spanned::Spanned as _;
use syn::{Attribute, FnArg, Ident, PatType, ReturnType, Safety, Type};

use crate::errors::Errors;
use crate::function::Function;
use crate::types::{Meant, Messages, check_concrete, meant, messages, peeled};

const CONNECTION: &str = "`conn: &mut PgConnection` (or `&mut SqliteConnection`, `&mut Inbox<…>`)";

/// What the expansion needs to know of the function.
pub struct Handler {
    pub name: Ident,
    pub manner: Manner,
    /// In the order written.
    pub arguments: Vec<Argument>,
    /// The `T` of the one `&mut T`.
    pub access: Type,
    pub output: Type,
}

/// How it is called.
pub enum Manner {
    /// `async` stands here: a future that is not `Send` is reported there.
    Awaited(Span),
    /// It records what it writes. `fn` stands here.
    Plain(Span),
}

pub enum Argument {
    /// The `&mut T`.
    Access,
    /// Read from the message; if there are `#[cfg(…)]`s on it, when all of them hold.
    Read { ty: Box<Type>, when: Option<TokenStream> },
}

impl Handler {
    pub fn check(function: &Function, errors: &mut Errors) -> Option<Self> {
        if let Some(second) = function.second_attribute() {
            errors.report(second, "one function, one consumer: write a second function that calls this one");
        }
        check_qualifiers(function, errors);
        let (arguments, access) = check_arguments(function, errors);
        let manner = check_manner(function, errors);
        let output = check_output(function, errors);
        Some(Self {
            name: function.name().clone(),
            manner: manner?,
            arguments,
            access: access?,
            output: output?,
        })
    }

    /// The arguments that are read from the message, and when.
    pub fn read(&self) -> impl Iterator<Item = (&Type, Option<&TokenStream>)> {
        self.arguments.iter().filter_map(|argument| match argument {
            Argument::Access => None,
            Argument::Read { ty, when } => Some((&**ty, when.as_ref())),
        })
    }
}

fn check_qualifiers(function: &Function, errors: &mut Errors) {
    let sig = &function.sig;
    if let Safety::Unsafe(token) = &sig.safety {
        errors.report(
            token,
            "a handler is called by the runtime, which cannot keep an `unsafe` function's promises",
        );
    }
    if let Some(abi) = &sig.abi {
        errors.report(abi, "a handler is a plain Rust function: leave `extern` out");
    }
    if let Some(variadic) = &sig.variadic {
        errors.report(variadic, "a handler takes a fixed list of arguments");
    }
    let generics = &sig.generics;
    if generics.type_params().next().is_some() || generics.const_params().next().is_some() {
        errors.report(generics, "a handler is not generic: one consumer is one concrete function");
    } else if generics.lifetimes().next().is_some() {
        errors.report(generics, "a handler names no lifetimes: it borrows its connection and owns the rest");
    }
}

/// Who records waits for nothing, and who waits has something to wait with.
fn check_manner(function: &Function, errors: &mut Errors) -> Option<Manner> {
    let sig = &function.sig;
    let records = sig.inputs.iter().any(|input| match input {
        FnArg::Typed(argument) => meant(&argument.ty) == Some(Meant::Effects),
        FnArg::Receiver(_) => false,
    });
    match (&sig.asyncness, records) {
        (Some(asyncness), false) => Some(Manner::Awaited(asyncness.span())),
        (None, true) => Some(Manner::Plain(sig.fn_token.span())),
        (Some(asyncness), true) => {
            let message = format!(
                "a handler that records `Effects` has nothing to wait for: write `fn {}`, without `async`; one \
                 that reads from the database takes {CONNECTION}",
                sig.ident
            );
            errors.report(asyncness, message);
            None
        }
        (None, false) => {
            let message = format!(
                "a handler is asynchronous: write `async fn {}`; only one that records what it writes in \
                 `&mut Effects` is a plain `fn`",
                sig.ident
            );
            errors.report(sig.fn_token, message);
            None
        }
    }
}

fn check_arguments(function: &Function, errors: &mut Errors) -> (Vec<Argument>, Option<Type>) {
    let (mut arguments, mut access, mut read) = (Vec::new(), None, Vec::new());
    for input in &function.sig.inputs {
        let argument = match input {
            FnArg::Typed(argument) => argument,
            FnArg::Receiver(receiver) => {
                let message = "free functions only: move it out of the `impl`, or call it from one";
                errors.report(receiver, message);
                continue;
            }
        };
        match peeled(&argument.ty) {
            Type::Reference(reference) if reference.mutability.is_some() => {
                check_access(argument, &reference.elem, access.is_some(), errors);
                access.get_or_insert_with(|| (*reference.elem).clone());
                arguments.push(Argument::Access);
            }
            ty => {
                read.push(ty);
                arguments.push(Argument::Read { ty: argument.ty.clone(), when: when(argument) });
            }
        }
    }
    // With a connection beside it, a `Transaction` may well be one of the user's own types.
    let (mistaken, read): (Vec<_>, Vec<_>) =
        read.into_iter().partition(|ty| access.is_none() && meant(ty).is_some());
    check_messages(&read, errors);
    for ty in read {
        check_read(ty, errors);
    }
    for ty in &mistaken {
        check_mistaken(ty, errors);
    }
    if access.is_none() && mistaken.is_empty() && !function.is_method() {
        let message = format!("a handler takes the connection of its inbox transaction: add {CONNECTION}");
        errors.report_missing(function.sig.paren_token.span.join(), message);
    }
    (arguments, access)
}

fn check_access(argument: &PatType, ty: &Type, taken: bool, errors: &mut Errors) {
    if taken {
        errors.report(&argument.ty, "a handler has one connection, and this is the second `&mut`");
    } else if meant(ty) == Some(Meant::Transaction) {
        check_mistaken(&argument.ty, errors);
    } else {
        check_concrete(ty, errors);
    }
    if let Some(cfg) = argument.attrs.iter().find(|attr| is_cfg(attr)) {
        let message =
            "the connection is always there: put `#[cfg(…)]` on the handler, and write one for each case";
        errors.report(cfg, message);
    }
}

/// All of one message, or all of many.
fn check_messages(read: &[&Type], errors: &mut Errors) {
    if !read.iter().any(|ty| messages(ty) == Some(Messages::Many)) {
        return;
    }
    for ty in read.iter().filter(|ty| messages(ty) == Some(Messages::One)) {
        let message = "a handler takes one message or many, and a `Vec` stands beside this: put `Vec<…>` around it \
                       as well, or leave `Vec` out everywhere";
        errors.report(ty, message);
    }
}

fn check_read(ty: &Type, errors: &mut Errors) {
    if let Type::Reference(_) = ty {
        let message = "a handler owns what it reads from the message: take it by value, without the `&`";
        errors.report(ty, message);
    } else {
        check_concrete(ty, errors);
    }
}

/// Reports what stands where a connection should.
fn check_mistaken(ty: &Type, errors: &mut Errors) {
    let message = match meant(ty) {
        Some(Meant::Connection) => {
            "a handler borrows its connection mutably: write `&mut` before the type".into()
        }
        Some(Meant::Pool) => format!(
            "a pool would hand out another connection than the one that holds the inbox transaction: take \
             {CONNECTION}"
        ),
        Some(Meant::Effects) => "a handler records in what it is lent: write `&mut Effects`".into(),
        Some(Meant::Transaction) => format!(
            "the inbox transaction is open already: take its connection, {CONNECTION}; `conn.begin()` makes a \
             savepoint in it"
        ),
        None => return,
    };
    errors.report(ty, message);
}

fn check_output(function: &Function, errors: &mut Errors) -> Option<Type> {
    match &function.sig.output {
        ReturnType::Type(_, ty) => {
            check_concrete(ty, errors);
            Some((**ty).clone())
        }
        ReturnType::Default => {
            let message = "a handler says whether it succeeded: add `-> Result<(), E>`, e.g. with `handstamp::BoxError`";
            errors.report_missing(function.name().span(), message);
            None
        }
    }
}

/// The `#[cfg(…)]`s on an argument as one predicate.
fn when(argument: &PatType) -> Option<TokenStream> {
    let mut predicates = argument.attrs.iter().filter(|attr| is_cfg(attr)).peekable();
    predicates.peek()?;
    let predicates = predicates.filter_map(|attr| attr.meta.require_list().ok()).map(|list| &list.tokens);
    Some(quote!(all(#(#predicates),*)))
}

fn is_cfg(attr: &Attribute) -> bool {
    attr.path().is_ident("cfg")
}
