//! The reference to an actor: one method that makes a call for each method that answers it.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Ident, Type};

use crate::interface::Interface;
use crate::method::{Argument, Method};
use crate::wire_type;

/// Writes the reference type.
pub(crate) fn expand(interface: &Interface<'_>) -> TokenStream {
    let Interface { base, visibility, kind, .. } = interface;
    let (name, inner) = (interface.reference(), interface.name());
    let doc = format!("A reference to an actor of kind `{kind}`, whose methods are those of [`{base}`].");
    let methods = interface.methods.iter().map(|method| call(interface, method));
    let create = interface.reliable.then(|| {
        quote! {
            /// An actor that comes into being with the commit of the current turn of a reliable actor, under a key that
            /// was never used. Messages to it may be sent at once; after it has halted they are dead letters.
            ///
            /// # Panics
            /// Outside of turns of reliable actors: there any key will do, as its actor always exists.
            pub fn create(cx: &::greenroom::__private::Cx) -> Self {
                Self(::greenroom::__private::Ref::create(cx))
            }
        }
    });
    quote! {
        #[doc = #doc]
        ///
        /// It is plain data and travels in messages. One that came in a message works inside of actors as it is; elsewhere,
        /// `bind` it to a node.
        #[allow(unreachable_pub)]
        #[derive(
            ::core::clone::Clone,
            ::core::cmp::PartialEq,
            ::core::cmp::Eq,
            ::core::fmt::Debug,
            ::greenroom::__private::serde::Serialize,
            ::greenroom::__private::serde::Deserialize,
        )]
        #[serde(crate = "::greenroom::__private::serde", transparent)]
        #visibility struct #name(::greenroom::__private::Ref<#inner>);

        #[automatically_derived]
        impl ::core::convert::From<::greenroom::__private::Ref<#inner>> for #name {
            fn from(reference: ::greenroom::__private::Ref<#inner>) -> Self {
                Self(reference)
            }
        }

        #[automatically_derived]
        impl ::core::convert::AsRef<::greenroom::__private::Ref<#inner>> for #name {
            fn as_ref(&self) -> &::greenroom::__private::Ref<#inner> {
                &self.0
            }
        }

        #[allow(private_interfaces, unreachable_pub, dead_code)]
        impl #name {
            /// The actor called `key`, as seen from `scope`: a node, or an actor's `cx`.
            pub fn of(
                scope: &impl ::greenroom::__private::Scope,
                key: impl ::core::convert::Into<::greenroom::__private::Key>,
            ) -> Self {
                Self(::greenroom::__private::Ref::of(scope, key))
            }

            #create

            /// The actor whose `cx` it is.
            pub fn me(cx: &::greenroom::__private::Cx) -> Self {
                Self(::greenroom::__private::Ref::me(cx))
            }

            /// The same actor, seen from `scope`.
            #[must_use]
            pub fn bind(&self, scope: &impl ::greenroom::__private::Scope) -> Self {
                Self(self.0.bind(scope))
            }

            /// The actor's key.
            pub fn key(&self) -> &::greenroom::__private::Key {
                self.0.key()
            }

            /// The actor's full name.
            pub fn id(&self) -> &::greenroom::__private::ActorId {
                self.0.id()
            }

            #(#methods)*
        }
    }
}

fn call(interface: &Interface<'_>, method: &Method) -> TokenStream {
    let Method { name, docs, .. } = method;
    let arguments = method.arguments_name(interface.base);
    let doc = docs.is_empty().then(|| {
        let doc = format!("Calls `{}`.", method.wire_name());
        quote!(#[doc = #doc])
    });
    let parameters = method.arguments.iter().map(|Argument { name, ty, .. }| match converts(ty) {
        true => quote!(#name: impl ::core::convert::Into<#ty>),
        false => quote!(#name: #ty),
    });
    let fields = method.arguments.iter().map(|Argument { name, ty, .. }| match converts(ty) {
        true => quote!(#name: ::core::convert::Into::into(#name),),
        false => quote!(#name,),
    });
    let of = interface.owner.map(|_| quote!(__of: ::core::marker::PhantomData,));
    quote_spanned! {name.span()=>
        #(#docs)* #doc
        pub fn #name(&self, #(#parameters),*) -> ::greenroom::__private::Call<#arguments> {
            self.0.call(#arguments { #(#fields)* #of })
        }
    }
}

/// Whether the reference's method takes whatever can be turned into the argument.
fn converts(ty: &Type) -> bool {
    let plain = |name: &Ident| name == "String" || name == "Key";
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.arguments.is_none()))
        && wire_type::last_ident(ty).is_some_and(plain)
}
