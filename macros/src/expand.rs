//! The generated code, from a checked model alone.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::Visibility;
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;

use crate::fallback::fallback;
use crate::function::Function;
use crate::handler::{Argument, Handler, Manner};
use crate::model::Model;

/// Keeps the function as it is, and adds to it the handler or what is wrong with it.
pub fn idempotent(attribute: TokenStream, item: &TokenStream) -> TokenStream {
    let function = match Function::parse(item) {
        Ok(function) => function,
        Err(error) => {
            let error = error.into_compile_error();
            return quote!(#item #error);
        }
    };
    match Model::check(attribute, &function) {
        Ok(model) => {
            let allowed = allowed(&model.handler.manner);
            let beside = carried(&declaration(&function.vis, &model), &implementation(&model));
            quote!(#allowed #item #beside)
        }
        Err(errors) => {
            let instead = fallback(&function, errors);
            quote!(#item #instead)
        }
    }
}

/// One that records may have nothing that can fail, and returns a `Result` all the same.
fn allowed(manner: &Manner) -> Option<TokenStream> {
    matches!(manner, Manner::Plain(_)).then(|| quote!(#[allow(clippy::unnecessary_wraps)]))
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
        // A deprecated handler is still called.
        #[allow(deprecated)]
        const _: () = {
            #takes
            #[automatically_derived]
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
    let called = quote!(#name(#(#passed),*));
    let (span, called) = match handler.manner {
        Manner::Awaited(span) => (span, called),
        Manner::Plain(span) => (span, quote!(::core::future::ready(#called))),
    };
    quote_spanned! {span=>
        fn call(
            #pattern: Self::Arguments,
            #access: &mut Self::Access,
        ) -> impl ::core::future::Future<Output = Self::Output> + ::core::marker::Send {
            #called
        }
    }
}

/// What an editor shows where the handler is named.
fn doc(model: &Model) -> String {
    let Model { consumer, key, settings, handler } = model;
    let settings = settings.iter().map(|setting| format!("`{setting}`"));
    let facts: Vec<String> = std::iter::once(format!("key `{key}`")).chain(settings).collect();
    format!(" The handler `{}` of the consumer `{}`: {}.", handler.name, consumer.value(), facts.join(", "))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(attribute: TokenStream, item: &TokenStream, expected: &Expect) {
        let function = Function::parse(item).expect("a function");
        let model = Model::check(attribute, &function).ok().expect("no mistakes");
        let (declaration, implementation) = (declaration(&function.vis, &model), implementation(&model));
        let file = syn::parse2(quote!(#declaration #implementation)).expect("valid Rust");
        expected.assert_eq(&prettyplease::unparse(&file));
    }

    #[test]
    fn a_handler_is_implemented_for_a_type_of_its_name() {
        check(
            quote!(consumer = "wallet-credits", key = header("event_id")),
            &quote! {
                async fn credit(Json(d): Json<Deposit>, conn: &mut PgConnection) -> sqlx::Result<()> {}
            },
            &expect![[r#"
                /// The handler `credit` of the consumer `wallet-credits`: key `header("event_id")`.
                #[allow(non_camel_case_types, dead_code, unreachable_pub, missing_debug_implementations)]
                struct credit {}
                #[allow(deprecated)]
                const _: () = {
                    #[automatically_derived]
                    impl ::handstamp::__private::Takes<0> for credit {
                        type Argument = Json<Deposit>;
                    }
                    #[automatically_derived]
                    impl ::handstamp::Handler for credit {
                        const CONSUMER: &'static ::core::primitive::str = "wallet-credits";
                        const KEY: ::handstamp::KeySource = ::handstamp::KeySource::Header("event_id");
                        const OPTIONS: ::handstamp::Options = ::handstamp::Options::new();
                        const PATH: &'static ::core::primitive::str = ::core::concat!(
                            ::core::module_path!(), "::", "credit"
                        );
                        type Arguments = (<Self as ::handstamp::__private::Takes<0>>::Argument, ());
                        type Access = PgConnection;
                        type Output = sqlx::Result<()>;
                        fn call(
                            (__a0, ()): Self::Arguments,
                            __access: &mut Self::Access,
                        ) -> impl ::core::future::Future<Output = Self::Output> + ::core::marker::Send {
                            credit(__a0, __access)
                        }
                    }
                };
            "#]],
        );
    }

    #[test]
    fn one_that_records_is_called_without_waiting() {
        check(
            quote!(consumer = "wallet-credits", key = position),
            &quote! {
                fn credit(Json(d): Json<Deposit>, fx: &mut Effects) -> Result<(), BoxError> {}
            },
            &expect![[r#"
                /// The handler `credit` of the consumer `wallet-credits`: key `position`.
                #[allow(non_camel_case_types, dead_code, unreachable_pub, missing_debug_implementations)]
                struct credit {}
                #[allow(deprecated)]
                const _: () = {
                    #[automatically_derived]
                    impl ::handstamp::__private::Takes<0> for credit {
                        type Argument = Json<Deposit>;
                    }
                    #[automatically_derived]
                    impl ::handstamp::Handler for credit {
                        const CONSUMER: &'static ::core::primitive::str = "wallet-credits";
                        const KEY: ::handstamp::KeySource = ::handstamp::KeySource::Position;
                        const OPTIONS: ::handstamp::Options = ::handstamp::Options::new();
                        const PATH: &'static ::core::primitive::str = ::core::concat!(
                            ::core::module_path!(), "::", "credit"
                        );
                        type Arguments = (<Self as ::handstamp::__private::Takes<0>>::Argument, ());
                        type Access = Effects;
                        type Output = Result<(), BoxError>;
                        fn call(
                            (__a0, ()): Self::Arguments,
                            __access: &mut Self::Access,
                        ) -> impl ::core::future::Future<Output = Self::Output> + ::core::marker::Send {
                            ::core::future::ready(credit(__a0, __access))
                        }
                    }
                };
            "#]],
        );
    }

    #[test]
    fn options_conditions_and_raw_names_are_carried_over() {
        check(
            quote! {
                consumer = "audit",
                key = (uuid(header("id")), json("/a", "/b"), with(keys::tenant)),
                order = key,
                attempts = 3,
                timeout = "2 minutes",
                on_tombstone = park,
            },
            &quote! {
                pub async fn r#type(
                    _: &mut Inbox<Postgres>,
                    #[cfg(feature = "audit")] audit: State<Audit>,
                    headers: Headers,
                ) -> Result<(), BoxError> {}
            },
            &expect![[r#"
                /// The handler `r#type` of the consumer `audit`: key `(uuid(header("id")), json("/a"), json("/b"), with(keys::tenant))`, `order = key`, `attempts = 3`, `timeout = "120000 ms"`, `on_tombstone = park`.
                #[allow(non_camel_case_types, dead_code, unreachable_pub, missing_debug_implementations)]
                pub struct r#type {}
                #[allow(deprecated)]
                const _: () = {
                    #[cfg(all(feature = "audit"))]
                    #[automatically_derived]
                    impl ::handstamp::__private::Takes<0> for r#type {
                        type Argument = State<Audit>;
                    }
                    #[cfg(not(all(feature = "audit")))]
                    #[automatically_derived]
                    impl ::handstamp::__private::Takes<0> for r#type {
                        type Argument = ();
                    }
                    #[automatically_derived]
                    impl ::handstamp::__private::Takes<1> for r#type {
                        type Argument = Headers;
                    }
                    #[automatically_derived]
                    impl ::handstamp::Handler for r#type {
                        const CONSUMER: &'static ::core::primitive::str = "audit";
                        const KEY: ::handstamp::KeySource = ::handstamp::KeySource::Composite(
                            &[
                                ::handstamp::KeySource::Uuid(&::handstamp::KeySource::Header("id")),
                                ::handstamp::KeySource::Json("/a"),
                                ::handstamp::KeySource::Json("/b"),
                                ::handstamp::KeySource::With(::handstamp::KeyFunction {
                                    path: "keys::tenant",
                                    read: keys::tenant,
                                }),
                            ],
                        );
                        const OPTIONS: ::handstamp::Options = ::handstamp::Options::new()
                            .order(::handstamp::Order::Key)
                            .attempts(3u32)
                            .timeout_ms(120000u64)
                            .on_tombstone(::handstamp::OnTombstone::Park);
                        const PATH: &'static ::core::primitive::str = ::core::concat!(
                            ::core::module_path!(), "::", "type"
                        );
                        type Arguments = (
                            <Self as ::handstamp::__private::Takes<0>>::Argument,
                            (<Self as ::handstamp::__private::Takes<1>>::Argument, ()),
                        );
                        type Access = Inbox<Postgres>;
                        type Output = Result<(), BoxError>;
                        fn call(
                            (__a0, (__a1, ())): Self::Arguments,
                            __access: &mut Self::Access,
                        ) -> impl ::core::future::Future<Output = Self::Output> + ::core::marker::Send {
                            r#type(__access, #[cfg(all(feature = "audit"))] __a0, __a1)
                        }
                    }
                };
            "#]],
        );
    }

    #[test]
    fn the_function_is_kept_token_for_token_and_its_body_is_not_parsed() {
        let item = quote! {
            /// Documented.
            pub(crate) async fn credit(mut a: Text, #[allow(unused)] _: &mut PgConnection) -> R { 1 2 => no rust }
        };
        let expanded = idempotent(quote!(consumer = "a", key = position), &item).to_string();
        assert!(expanded.starts_with(&item.to_string()), "{expanded}");
    }

    #[test]
    fn a_handler_with_mistakes_is_kept_and_its_name_declared() {
        let item = quote!(
            async fn credit(_: &mut PgConnection) -> R {}
        );
        let expanded = idempotent(quote!(consumer = "a"), &item).to_string();
        let declared = quote!(#item #[allow(non_camel_case_types, dead_code)] type credit =).to_string();
        assert!(expanded.starts_with(&declared), "{expanded}");
    }
}
