//! What must hold of the user's types, asserted at the user's code and in words that say what to do. The rest of what is
//! written would not compile either, but less clearly.

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use syn::Type;
use syn::spanned::Spanned;

use crate::method::Method;

/// Arguments, replies and errors are plain data.
pub(crate) fn travels(methods: &[Method]) -> TokenStream {
    let asserted = methods.iter().flat_map(|method| {
        let arguments = method.arguments.iter().map(|argument| {
            let ty = &argument.ty;
            quote_spanned!(at(ty.span())=> travels::<#ty>();)
        });
        let ends = ["Reply", "Error"].map(|end| {
            let end = method.end(end);
            quote!(travels::<#end>();)
        });
        arguments.chain(ends).collect::<Vec<_>>()
    });
    quote! {
        const _: () = {
            #[diagnostic::on_unimplemented(
                message = "`{Self}` cannot travel between nodes",
                label = "arguments, replies and errors of actor methods are plain serde data",
                note = "derive `serde::Serialize` and `serde::Deserialize` for it, and keep thread-bound parts out of it"
            )]
            trait Travels {}
            #[diagnostic::do_not_recommend]
            impl<T: ::greenroom::__private::Portable> Travels for T {}
            const fn travels<T: Travels>() {}
            #(#asserted)*
        };
    }
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
