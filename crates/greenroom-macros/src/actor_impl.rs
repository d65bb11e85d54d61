//! `#[actor]` above an inherent `impl` block.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Error, Ident, ImplItem, ImplItemFn, ItemImpl, Path, Result, Type, Visibility, parse_quote};

use crate::hooks::{self, Hooks};
use crate::interface::Interface;
use crate::machine::{self, Machine};
use crate::method::{self, Method};
use crate::options::Options;
use crate::{assertions, before_commit, behaviour, by_hand, names, one_block, reference, stream_type, wire_type};

/// The block as it is, and all that is written from it.
pub(crate) fn expand(options: TokenStream, mut item: ItemImpl) -> TokenStream {
    let (written, states) = match write(options, &item) {
        Ok((written, states)) => (written, states),
        Err(error) => (error.into_compile_error(), None),
    };
    let mut errors = Errors::default();
    for function in item.items.iter_mut() {
        if let ImplItem::Fn(function) = function {
            if let Some(states) = &states {
                errors.keep(before_commit::guard(function, states));
            }
            errors.keep(check_blocking(function));
            method::strip(&mut function.attrs, &mut function.sig);
            if is_method(function) {
                stream_type::outlive(&mut function.sig, false);
            }
        }
    }
    // Methods are `pub` to be methods, not to be reached without a reference.
    let errors = errors.end().err().map(Error::into_compile_error);
    quote!(#[allow(unreachable_pub)] #item #written #errors)
}

/// All that is written, and of a reliable actor the states that it has.
fn write(options: TokenStream, item: &ItemImpl) -> Result<(TokenStream, Option<Vec<String>>)> {
    let mut errors = Errors::default();
    let options = errors.keep(Options::parse(options));
    let actor = &*item.self_ty;
    let base = base(item)?;
    one_block::check(base)?;
    by_hand::check(base)?;
    let mut methods = Vec::new();
    let mut hooks = Hooks::default();
    let mut machine = Machine::default();
    for function in functions(item) {
        if let Some(on) = function.attrs.iter().find(|attribute| machine::is_on(attribute)) {
            errors.keep(machine.add(on, function, actor));
        } else if hooks::is_hook(function) && !is_public(function) {
            errors.keep(hooks.add(function));
        } else if is_method(function) {
            methods.extend(errors.keep(method_of(function, actor)));
        }
    }
    errors.end()?;
    let mut options = options.unwrap_or_default();
    options.states = machine.states(options.start.as_ref())?;
    methods.extend(machine.methods);
    if let (true, Some(overlooked)) = (methods.is_empty(), functions(item).find_map(overlooked)) {
        return Err(overlooked);
    }
    method::check_set(&methods, base.span())?;
    if options.reliable {
        hooks.check_reliable()?;
        method::check_reliable(&methods)?;
    }

    let kind = options.kind.as_ref().map_or_else(|| names::snake_case(&base.to_string()), syn::LitStr::value);
    let visibility: Visibility = parse_quote!(pub);
    let versions = options.versions();
    let (reliable, machine, owner) = (options.reliable, !options.states.is_empty(), Some(actor));
    let interface =
        Interface { base, visibility: &visibility, kind, versions, reliable, machine, owner, methods: &methods };
    let (this, callee) = (quote!(self), quote!(Self));
    let turns = [false, true].map(|read| behaviour::dispatch(&interface, read, &this, &callee));
    let path: Path = interface.name().into();
    let behaviour = behaviour::expand(actor, &path, &options, &hooks, turns);
    let reference = reference::expand(&interface);
    let created = (reliable && functions(item).all(|function| function.sig.ident != "create")).then(|| {
        let reference = interface.reference();
        quote! {
            #[allow(dead_code, unreachable_pub)]
            impl #actor {
                /// An actor that comes into being with the commit of the current turn of a reliable actor: see `create`
                /// of its reference.
                ///
                /// # Panics
                /// Outside of turns of reliable actors.
                pub fn create(cx: &::greenroom::__private::Cx) -> #reference {
                    #reference::create(cx)
                }
            }
        }
    });
    let interface = interface.expand();
    let shared = assertions::shared(actor, &methods);
    Ok((quote!(#shared #interface #reference #behaviour #created), reliable.then_some(options.states)))
}

/// The actor's name, which all that is written begins with.
pub(crate) fn base(item: &ItemImpl) -> Result<&Ident> {
    let generic = match &*item.self_ty {
        Type::Path(path) => path.path.segments.last().is_some_and(|last| !last.arguments.is_none()),
        _ => false,
    };
    if !item.generics.params.is_empty() || generic {
        let message =
            "an actor is not generic: its kind names one type; wrap each type that you need in a struct of its own";
        return Err(Error::new_spanned(&item.self_ty, message));
    }
    wire_type::last_ident(&item.self_ty)
        .ok_or_else(|| Error::new_spanned(&item.self_ty, "write the name of the actor's type here"))
}

fn functions(item: &ItemImpl) -> impl Iterator<Item = &ImplItemFn> {
    item.items.iter().filter_map(|item| match item {
        ImplItem::Fn(function) => Some(function),
        _ => None,
    })
}

fn is_public(function: &ImplItemFn) -> bool {
    matches!(function.vis, Visibility::Public(_))
}

/// Public with a receiver: all others are ordinary functions of the type.
fn is_method(function: &ImplItemFn) -> bool {
    is_public(function) && function.sig.receiver().is_some()
}

/// Why a function is no method, if it looks as if it should be one.
fn overlooked(function: &ImplItemFn) -> Option<Error> {
    let (signature, name) = (&function.sig, &function.sig.ident);
    if signature.asyncness.is_none() || hooks::is_hook(function) {
        return None;
    }
    let message = match (is_public(function), signature.receiver()) {
        (false, Some(_)) => {
            format!("methods of an actor are `pub`: write `pub async fn {name}`, so that a message can call it")
        }
        (true, None) => {
            format!("a message goes to an actor: let `{name}` take `&mut self` first, or `&self` for a read")
        }
        _ => return None,
    };
    Some(Error::new_spanned(name, message))
}

/// Refuses `#[blocking]` on what no message calls.
fn check_blocking(function: &ImplItemFn) -> Result<()> {
    match function.attrs.iter().find(|attribute| method::is_blocking(attribute)) {
        Some(blocking) if !is_method(function) => {
            let message =
                "only what a message calls gets a thread: write `pub fn` with `&mut self`, or remove `#[blocking]`";
            Err(Error::new_spanned(blocking, message))
        }
        _ => Ok(()),
    }
}

fn method_of(function: &ImplItemFn, actor: &Type) -> Result<Method> {
    if !Method::may_be(&function.attrs, &function.sig) {
        let name = &function.sig.ident;
        let message = format!(
            "public methods of an actor are called by messages: write `pub async fn {name}`, or remove `pub` to keep it inside"
        );
        return Err(Error::new_spanned(function.sig.fn_token.to_token_stream(), message));
    }
    Method::parse(&function.attrs, &function.sig, Some(actor))
}

/// Mistakes are told all at once.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    pub(crate) fn keep<T>(&mut self, result: Result<T>) -> Option<T> {
        result
            .map_err(|error| match &mut self.0 {
                Some(first) => first.combine(error),
                None => self.0 = Some(error),
            })
            .ok()
    }

    pub(crate) fn end(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}
