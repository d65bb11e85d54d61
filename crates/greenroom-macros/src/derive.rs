//! `#[derive(Actor)]`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::DeriveInput;

/// The type's implementation of `Actor`, or why it has none.
pub(crate) fn expand(item: &DeriveInput) -> TokenStream {
    let name = &item.ident;
    if !item.generics.params.is_empty() {
        let message =
            "an actor is not generic: its kind names one type; wrap each type that you need in a struct of its own";
        return syn::Error::new_spanned(&item.generics, message).into_compile_error();
    }
    let make = quote_spanned!(name.span()=> <Self as ::core::default::Default>::default());
    quote! {
        #[automatically_derived]
        impl ::greenroom::__private::Actor for #name {
            fn create(_: &::greenroom::__private::Cx) -> ::core::result::Result<Self, ::std::string::String> {
                ::core::result::Result::Ok(#make)
            }
        }
    }
}
