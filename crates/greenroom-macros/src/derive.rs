//! `#[derive(Actor)]`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{Data, DeriveInput, Member};

use crate::{signature, wire_type};

/// The type's implementation of `Actor`, or why it has none.
pub(crate) fn expand(item: &DeriveInput) -> TokenStream {
    let name = &item.ident;
    if !item.generics.params.is_empty() {
        let message =
            "an actor is not generic: its kind names one type; wrap each type that you need in a struct of its own";
        return syn::Error::new_spanned(&item.generics, message).into_compile_error();
    }
    let (stored, kept) = (stored(item), kept(item));
    let doc = signature::paragraph(&item.attrs);
    let make = quote_spanned!(name.span()=> <Self as ::core::default::Default>::default());
    quote! {
        #[automatically_derived]
        impl ::greenroom::__private::Actor for #name {
            fn create(_: &::greenroom::__private::Cx) -> ::core::result::Result<Self, ::std::string::String> {
                ::core::result::Result::Ok(#make)
            }

            const DOC: &'static str = #doc;
            #stored
        }

        #kept
    }
}

/// What a journal keeps of the actor, if it is a reliable one. The bounds name a lifetime so that they are not looked at
/// before somebody asks for the implementation: the fields of other actors need not meet them.
fn kept(item: &DeriveInput) -> Option<TokenStream> {
    let Data::Struct(data) = &item.data else { return None };
    let (mut parts, mut bounds) = (Vec::new(), Vec::new());
    for (index, field) in data.fields.iter().enumerate() {
        if field.attrs.iter().any(|attribute| attribute.path().is_ident("volatile")) {
            continue;
        }
        let member = field.ident.clone().map_or_else(|| Member::from(index), Member::from);
        let text = field.ident.as_ref().map_or_else(|| index.to_string(), |name| name.unraw().to_string());
        let by_entries = wire_type::last_ident(&field.ty).is_some_and(|name| ENTRIES.iter().any(|known| name == known));
        let (part, bound) = match by_entries {
            true => (quote!(Entries), quote!(Field)),
            false => (quote!(Whole), quote!(Whole)),
        };
        let ty = &field.ty;
        parts.push(quote!((#text, ::greenroom::__private::Part::#part(&mut self.#member))));
        bounds.push(quote!(for<'__kept> #ty: ::greenroom::__private::#bound + ::core::marker::Send,));
    }
    let name = &item.ident;
    Some(quote! {
        #[automatically_derived]
        impl ::greenroom::__private::Kept for #name
        where
            #(#bounds)*
        {
            fn kept(&mut self) -> ::std::vec::Vec<(&'static str, ::greenroom::__private::Part<'_>)> {
                ::std::vec![#(#parts),*]
            }
        }
    })
}

/// Types of fields that know what a turn has changed of them.
const ENTRIES: &[&str] = &["Register", "Map", "Queue", "Set"];

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
    let named = data.fields.iter().filter_map(|field| {
        let versioned = match wire_type::last_ident(&field.ty)? {
            name if name == "Stored" => false,
            name if name == "Versioned" => true,
            _ => return None,
        };
        let text = field.ident.as_ref()?.unraw().to_string();
        Some(quote!((#text, #versioned)))
    });
    let versions = data.fields.iter().filter_map(|field| {
        let (ty, name) = (&field.ty, wire_type::last_ident(&field.ty)?);
        let said = quote!(<#ty as ::greenroom::__private::StoredVersions>);
        (name == "Stored" || name == "Versioned").then(|| quote!((#said::VERSIONS, #said::UPDATES)))
    });
    let written = data.fields.iter().filter_map(|field| {
        let (ty, name) = (&field.ty, wire_type::last_ident(&field.ty)?);
        let text = field.ident.as_ref()?.unraw().to_string();
        let said = quote!(<#ty as ::greenroom::__private::StoredVersions>::written(json, in_force));
        (name == "Stored").then(|| quote!(#text => #said))
    });
    (!fields.is_empty()).then(|| {
        quote! {
            fn written_field(
                field: &str,
                json: &[u8],
                in_force: u8,
            ) -> ::core::option::Option<::core::result::Result<::greenroom::__private::Written, ::std::string::String>> {
                match field {
                    #(#written,)*
                    _ => ::core::option::Option::None,
                }
            }

            const STORED: bool = true;
            const FIELD_VERSIONS: &'static [(
                ::greenroom::__private::StateVersions,
                ::core::option::Option<::greenroom::__private::StateVersions>,
            )] = &[#(#versions),*];
            const FIELDS: &'static [(&'static str, bool)] = &[#(#named),*];

            fn stored(&mut self) -> ::std::vec::Vec<(&'static str, &mut dyn ::greenroom::__private::AnyStored)> {
                ::std::vec![#(#fields),*]
            }
        }
    })
}
