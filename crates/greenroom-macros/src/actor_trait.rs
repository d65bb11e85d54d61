//! `#[actor]` above a trait: an interface apart from its implementations.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, ItemTrait, LitStr, Result, ReturnType, TraitItem, TraitItemFn, Type, parse_quote};

use crate::actor_impl::Errors;
use crate::interface::Interface;
use crate::method::{self, Method};
use crate::options::Options;
use crate::{behaviour, names, reference, stream_type};

/// The trait with futures that may move between threads, and all that is written from it.
pub(crate) fn expand(options: TokenStream, mut item: ItemTrait) -> TokenStream {
    let written = write(options, &item).unwrap_or_else(Error::into_compile_error);
    item.supertraits.push(parse_quote!(::greenroom::__private::Actor));
    for function in &mut item.items {
        if let TraitItem::Fn(function) = function {
            name_future(function);
        }
    }
    quote!(#item #written)
}

fn write(options: TokenStream, item: &ItemTrait) -> Result<TokenStream> {
    let mut errors = Errors::default();
    let options = errors.keep(Options::parse(options)).unwrap_or_default();
    errors.keep(options.allow_only(
        &["kind", "interface", "compatible"],
        "belongs to the implementation: write it in the `#[actor(..)]` above its `impl`",
    ));
    if !item.generics.params.is_empty() {
        let message = "an interface is not generic, as its kind names one type; write a trait for each type";
        errors.keep::<()>(Err(Error::new_spanned(&item.generics, message)));
    }
    let mut methods = Vec::new();
    for item in &item.items {
        methods.extend(errors.keep(method_of(item)));
    }
    errors.end()?;
    let base = &item.ident;
    method::check_set(&methods, base.span())?;

    let kind = options.kind.as_ref().map_or_else(|| kind(&base.to_string()), LitStr::value);
    let versions = options.versions();
    let (visibility, methods) = (&item.vis, &*methods);
    let interface =
        Interface { base, visibility, kind, versions, reliable: false, machine: false, owner: None, methods };
    let dispatch = dispatch(&interface);
    let reference = reference::expand(&interface);
    let interface = interface.expand();
    Ok(quote!(#interface #reference #dispatch))
}

/// The kind of the actors behind the trait `name`: `chat_room` for `ChatRoomApi`.
fn kind(name: &str) -> String {
    let stem = name.strip_suffix("Api").filter(|stem| !stem.is_empty());
    names::snake_case(stem.unwrap_or(name))
}

fn method_of(item: &TraitItem) -> Result<Method> {
    match item {
        TraitItem::Fn(function) if function.default.is_some() => Err(Error::new_spanned(
            &function.default,
            "an interface says what can be called, not what happens: remove the body",
        )),
        TraitItem::Fn(function) if !Method::may_be(&function.attrs, &function.sig) => {
            let message =
                format!("methods of an actor are called by messages: write `async fn {}`", function.sig.ident);
            Err(Error::new_spanned(function.sig.fn_token, message))
        }
        TraitItem::Fn(function) => Method::parse(&function.attrs, &function.sig, None),
        other => Err(Error::new_spanned(other, "an interface has methods only")),
    }
}

/// Turns `async fn` into a function that returns a future which may move between threads.
fn name_future(function: &mut TraitItemFn) {
    method::strip(&mut function.attrs, &mut function.sig);
    stream_type::outlive(&mut function.sig, true);
    if function.sig.asyncness.take().is_some() {
        let output: Type = match &function.sig.output {
            ReturnType::Default => parse_quote!(()),
            ReturnType::Type(_, ty) => (**ty).clone(),
        };
        function.default = None;
        function.semi_token.get_or_insert_default();
        function.sig.output = parse_quote!(-> impl ::core::future::Future<Output = #output> + ::core::marker::Send);
    }
}

/// What implementations run their messages with: only this place sees the names of the messages.
fn dispatch(interface: &Interface<'_>) -> TokenStream {
    let (base, name, message) = (interface.base, interface.name(), interface.message());
    let (this, callee) = (quote!(actor), quote!(<__Actor as #base>));
    let [exclusive, read] = [false, true].map(|read| behaviour::dispatch(interface, read, &this, &callee));
    quote! {
        #[doc(hidden)]
        #[allow(private_bounds)]
        impl #name {
            pub async fn exclusive<__Actor: #base>(
                actor: &mut __Actor,
                cx: &::greenroom::__private::Cx,
                message: #message,
            ) {
                let _ = (&actor, cx);
                #exclusive
            }

            pub async fn read<__Actor: #base>(actor: &__Actor, cx: &::greenroom::__private::Cx, message: #message) {
                let _ = (actor, cx);
                #read
            }
        }
    }
}
