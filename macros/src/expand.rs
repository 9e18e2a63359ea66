//! The generated code, from a checked model alone.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::Visibility;
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;

use crate::fallback::fallback;
use crate::function::Function;
use crate::handler::{Argument, Handler};
use crate::model::Model;

/// Keeps the function as it is, and adds to it the handler or what is wrong with it.
pub fn idempotent(attribute: TokenStream, item: &TokenStream) -> TokenStream {
    let beside = match Function::parse(item) {
        Ok(function) => match Model::check(attribute, &function) {
            Ok(model) => carried(&declaration(&function.vis, &model), &implementation(&model)),
            Err(errors) => fallback(&function, errors),
        },
        Err(error) => error.into_compile_error(),
    };
    quote!(#item #beside)
}

/// One item in all, so that in an `impl`, where no struct can be declared, the compiler says so once and
/// sees nothing else. `beside` puts the implementation behind the struct.
fn carried(declaration: &TokenStream, implementation: &TokenStream) -> TokenStream {
    quote! {
        #[::handstamp::__private::beside(#implementation)]
        #declaration
    }
}

/// The type that shares the function's name. Its braces keep it out of the function's namespace.
fn declaration(vis: &Visibility, model: &Model) -> TokenStream {
    let name = &model.handler.name;
    let doc = doc(model);
    quote_spanned! {name.span()=>
        #[doc = #doc]
        #[allow(non_camel_case_types, dead_code, unreachable_pub, missing_debug_implementations)]
        #vis struct #name {}
    }
}

/// ```text
/// #[idempotent(consumer = "wallet-credits", key = header("event_id"))]
/// async fn credit(Json(d): Json<Deposit>, conn: &mut PgConnection) -> R { … }
/// ```
/// is implemented, paths shortened, as
/// ```text
/// impl Takes<0> for credit { type Argument = Json<Deposit>; }
/// impl Handler for credit {
///     const CONSUMER: &str = "wallet-credits"; …
///     type Arguments = (<Self as Takes<0>>::Argument, ());
///     type Access = PgConnection;
///     type Output = R;
///     fn call((a0, ()): Self::Arguments, access: &mut Self::Access) -> impl Future<Output = R> + Send {
///         credit(a0, access)
///     }
/// }
/// ```
fn implementation(model: &Model) -> TokenStream {
    let Model { consumer, key, settings, handler } = model;
    let Handler { name, access, output, .. } = handler;
    let path = name.unraw().to_string();
    let (takes, arguments, call) = (takes(handler), arguments(handler), call(handler));
    quote! {
        const _: () = {
            #takes
            #[automatically_derived]
            #[allow(deprecated)]
            impl ::handstamp::Handler for #name {
                const CONSUMER: &'static ::core::primitive::str = #consumer;
                const KEY: ::handstamp::KeySource = #key;
                const OPTIONS: ::handstamp::Options = ::handstamp::Options::new() #(#settings)*;
                const PATH: &'static ::core::primitive::str =
                    ::core::concat!(::core::module_path!(), "::", #path);
                type Arguments = #arguments;
                type Access = #access;
                type Output = #output;
                #call
            }
        };
    }
}

/// One impl per argument, so that a type that cannot be read is reported where it was written. An
/// argument that its `#[cfg(…)]` removes is read as `()`, which reads nothing, and is not passed on.
fn takes(handler: &Handler) -> TokenStream {
    let name = &handler.name;
    let implementation = |index: usize, ty: &TokenStream| {
        let index = Literal::usize_unsuffixed(index);
        // A private type is reported at this line as a whole, so the line stands at the type's place.
        let argument = quote_spanned!(ty.span()=> type Argument = #ty;);
        quote! {
            #[automatically_derived]
            #[allow(deprecated)]
            impl ::handstamp::__private::Takes<#index> for #name {
                #argument
            }
        }
    };
    let takes = handler.read().enumerate().map(|(index, (ty, when))| {
        let present = implementation(index, &ty.to_token_stream());
        let Some(when) = when else { return present };
        let absent = implementation(index, &quote!(()));
        quote!(#[cfg(#when)] #present #[cfg(not(#when))] #absent)
    });
    quote!(#(#takes)*)
}

/// The list of what is read, `(A, (B, ()))`. It refers to `Takes`, so that each type is written once and
/// no mistake in it is reported twice.
fn arguments(handler: &Handler) -> TokenStream {
    let last = handler.read().count();
    (0..last).rev().map(Literal::usize_unsuffixed).fold(
        quote!(()),
        |rest, index| quote!((<Self as ::handstamp::__private::Takes<#index>>::Argument, #rest)),
    )
}

/// The call of the function as written. Its span is the function's `async`, where the compiler then says
/// that the future is not `Send`.
fn call(handler: &Handler) -> TokenStream {
    let name = &handler.name;
    let bindings: Vec<Ident> = (0..handler.read().count()).map(|index| format_ident!("__a{index}")).collect();
    let pattern = bindings.iter().rev().fold(quote!(()), |rest, binding| quote!((#binding, #rest)));
    // One identifier for both its places: written twice, they could differ in hygiene.
    let access = format_ident!("__access");
    let mut read = bindings.iter();
    let passed = handler.arguments.iter().map(|argument| match argument {
        Argument::Access => Some(access.to_token_stream()),
        Argument::Read { when: None, .. } => read.next().map(ToTokens::to_token_stream),
        Argument::Read { when: Some(when), .. } => read.next().map(|binding| quote!(#[cfg(#when)] #binding)),
    });
    quote_spanned! {handler.asyncness=>
        fn call(
            #pattern: Self::Arguments,
            #access: &mut Self::Access,
        ) -> impl ::core::future::Future<Output = Self::Output> + ::core::marker::Send {
            #name(#(#passed),*)
        }
    }
}

/// What an editor shows where the handler is named.
fn doc(model: &Model) -> String {
    let Model { consumer, key, settings, handler } = model;
    let settings = settings.iter().map(|setting| format!("`{setting}`"));
    let facts: Vec<String> = std::iter::once(format!("key `{key}`")).chain(settings).collect();
    format!("The handler `{}` of the consumer `{}`: {}.", handler.name, consumer.value(), facts.join(", "))
}
