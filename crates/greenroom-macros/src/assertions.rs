//! What must hold of the user's types, asserted at the user's code and in words that say what to do. The rest of what is
//! written would not compile either, but less clearly.

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use syn::Type;
use syn::spanned::Spanned;

use crate::method::Method;

/// Arguments, replies and errors are plain data: the constant that `asserted` types are asserted by.
pub(crate) fn travels(methods: &[Method]) -> TokenStream {
    let asserted = methods.iter().flat_map(|method| {
        let arguments = method.arguments.iter().map(|argument| {
            let ty = &argument.ty;
            quote_spanned!(at(ty.span())=> ::greenroom::__private::travels::<#ty>();)
        });
        let ends = ["Reply", "Error"].map(|end| {
            let end = method.end(end);
            quote!(::greenroom::__private::travels::<#end>();)
        });
        arguments.chain(ends).collect::<Vec<_>>()
    });
    quote! {
        const TRAVELS: usize = {
            #(#asserted)*
            0
        };
    }
}

/// The fields of a reliable actor can be kept.
pub(crate) fn kept(actor: &Type) -> TokenStream {
    let kept = quote_spanned!(at(actor.span())=> ::greenroom::__private::kept::<#actor>());
    quote! {
        const KEPT: usize = {
            #kept;
            0
        };
    }
}

/// A persistent actor is a state. Its implementation of `State` has a bound that names a lifetime, so that it is not looked at
/// there but here.
pub(crate) fn state(actor: &Type) -> TokenStream {
    of_actor(actor, &quote!(__STATE), &quote!(state_of))
}

/// An actor that migrates as a whole travels.
pub(crate) fn carried(actor: &Type) -> TokenStream {
    of_actor(actor, &quote!(__CARRIED), &quote!(travels))
}

/// The constant called `name` that asserts something of an actor.
fn of_actor(actor: &Type, name: &TokenStream, asserts: &TokenStream) -> TokenStream {
    let asserted = quote_spanned!(at(actor.span())=> ::greenroom::__private::#asserts::<#actor>());
    quote! {
        #[automatically_derived]
        impl #actor {
            #[doc(hidden)]
            const #name: usize = {
                #asserted;
                0
            };
        }
    }
}

/// `ty` where `assertions` is the constant that asserts what must hold of it. If that does not hold, nothing that is written
/// with the type has more to say about it: the constant has said it.
pub(crate) fn asserted(ty: &TokenStream, assertions: &TokenStream) -> TokenStream {
    quote!(<#ty as ::greenroom::__private::Asserted<{ #assertions }>>::Type)
}

/// An actor that has reads can be shared by them.
pub(crate) fn shared(actor: &Type, methods: &[Method]) -> Option<TokenStream> {
    let read = methods.iter().find(|method| method.read)?;
    let actor = place(quote!(#actor), read.receiver);
    Some(quote! {
        const _: () = {
            #[diagnostic::on_unimplemented(
                message = "reads of `{Self}` interleave, so it must be `Sync`",
                label = "a read takes `&self`",
                note = "take `&mut self` to make the method an exclusive turn, or make all fields of the actor `Sync`"
            )]
            trait Shared {}
            #[diagnostic::do_not_recommend]
            impl<A: ::core::marker::Sync> Shared for A {}
            const fn shared<A: Shared>() {}
            shared::<#actor>();
        };
    })
}

/// The place of `span`, where the names are those of all that is written here.
pub(crate) fn at(span: Span) -> Span {
    span.resolved_at(Span::call_site())
}

/// `tokens`, all of them placed at `span`: what is wrong with a type is shown where the type is written.
pub(crate) fn place(tokens: TokenStream, span: Span) -> TokenStream {
    let placed = tokens.into_iter().map(|token| match token {
        TokenTree::Group(group) => {
            let mut placed = Group::new(group.delimiter(), place(group.stream(), span));
            placed.set_span(at(span));
            placed.into()
        }
        mut token => {
            token.set_span(at(span));
            token
        }
    });
    placed.collect()
}
