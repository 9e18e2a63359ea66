//! What stands in for a handler that has mistakes, so that nothing but the mistakes is reported.

use proc_macro2::TokenStream;
use quote::quote;

use crate::errors::Errors;
use crate::function::Function;

/// Declares the handler's name as a type that is itself the first error: the compiler takes any use of
/// such a type for granted, so `consume::<credit>` elsewhere is not reported as well.
pub fn fallback(function: &Function, errors: Errors) -> TokenStream {
    let (name, vis) = (function.name(), &function.vis);
    let mut errors = errors.into_iter().map(syn::Error::into_compile_error);
    let first = errors.next().map(|error| {
        // In an `impl` no type can be declared, and under a second attribute there will be one.
        if function.is_method() || function.second_attribute().is_some() {
            return error;
        }
        quote! {
            #[allow(non_camel_case_types, dead_code)]
            #vis type #name = [(); #error];
        }
    });
    quote!(#first #(#errors)*)
}
