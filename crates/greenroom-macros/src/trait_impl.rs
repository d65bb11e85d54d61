//! `#[actor]` above an implementation of a trait that has `#[actor]` itself.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, ImplItem, ItemImpl, Path, Result};

use crate::actor_impl::{Errors, base};
use crate::hooks::{self, Hooks};
use crate::options::Options;
use crate::{behaviour, by_hand, names, stream_type};

/// The block without its hooks, the hooks in a block of their own, and the dispatch.
pub(crate) fn expand(options: TokenStream, mut item: ItemImpl) -> TokenStream {
    let mut errors = Errors::default();
    let mut hooks = Hooks::default();
    let (moved, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut item.items)
        .into_iter()
        .partition(|item| matches!(item, ImplItem::Fn(function) if hooks::is_hook(function)));
    item.items = kept;
    for item in &mut item.items {
        if let ImplItem::Fn(function) = item {
            stream_type::outlive(&mut function.sig, true);
        }
    }
    for function in &moved {
        if let ImplItem::Fn(function) = function {
            errors.keep(hooks.add(function));
        }
    }
    let options = errors.keep(Options::parse(options));
    let behaviour = errors.end().and_then(|()| write(&options.unwrap_or_default(), &item, &hooks));
    let behaviour = behaviour.unwrap_or_else(Error::into_compile_error);
    let actor = &item.self_ty;
    let moved = (!moved.is_empty()).then(|| quote!(impl #actor { #(#moved)* }));
    quote!(#item #moved #behaviour)
}

fn write(options: &Options, item: &ItemImpl, hooks: &Hooks) -> Result<TokenStream> {
    by_hand::check(base(item)?)?;
    options.allow_only(
        &[
            "placement",
            "idle",
            "workers",
            "mailbox",
            "in_flight",
            "persistent",
            "migrate",
            "save",
            "store",
            "protocol",
            "leader",
            "version",
            "writes",
            "instances",
            "activation",
        ],
        "belongs to the interface: write it in the `#[actor(..)]` above the trait",
    )?;
    let Some((_, path, _)) = &item.trait_ else {
        return Err(Error::new_spanned(item, "this is not an implementation of a trait"));
    };
    let interface = interface(path);
    let turns = ["exclusive", "read"].map(|turn| {
        let turn = syn::Ident::new(turn, proc_macro2::Span::call_site());
        quote!(#interface::#turn(self, cx, message).await)
    });
    Ok(behaviour::expand(&item.self_ty, &interface, options, hooks, turns))
}

/// The interface beside the trait at `path`.
fn interface(path: &Path) -> Path {
    let mut interface = path.clone();
    if let Some(last) = interface.segments.last_mut() {
        last.ident = names::join(&last.ident, "Interface");
    }
    interface
}
