//! `#[derive(Actor)]`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{Data, DeriveInput};

use crate::wire_type;

/// The type's implementation of `Actor`, or why it has none.
pub(crate) fn expand(item: &DeriveInput) -> TokenStream {
    let name = &item.ident;
    if !item.generics.params.is_empty() {
        let message =
            "an actor is not generic: its kind names one type; wrap each type that you need in a struct of its own";
        return syn::Error::new_spanned(&item.generics, message).into_compile_error();
    }
    let stored = stored(item);
    let make = quote_spanned!(name.span()=> <Self as ::core::default::Default>::default());
    quote! {
        #[automatically_derived]
        impl ::greenroom::__private::Actor for #name {
            fn create(_: &::greenroom::__private::Cx) -> ::core::result::Result<Self, ::std::string::String> {
                ::core::result::Result::Ok(#make)
            }

            #stored
        }
    }
}

/// The fields that are states of their own, if there are any.
fn stored(item: &DeriveInput) -> Option<TokenStream> {
    let Data::Struct(data) = &item.data else { return None };
    let stored = data
        .fields
        .iter()
        .filter(|field| wire_type::last_ident(&field.ty).is_some_and(|name| name == "Stored" || name == "Versioned"));
    let fields: Vec<TokenStream> = stored
        .filter_map(|field| field.ident.as_ref())
        .map(|name| {
            let text = name.unraw().to_string();
            quote!((#text, &mut self.#name as &mut dyn ::greenroom::__private::AnyStored))
        })
        .collect();
    (!fields.is_empty()).then(|| {
        quote! {
            const STORED: bool = true;

            fn stored(&mut self) -> ::std::vec::Vec<(&'static str, &mut dyn ::greenroom::__private::AnyStored)> {
                ::std::vec![#(#fields),*]
            }
        }
    })
}
