//! One method of an interface, as it is written, and the mistakes that can be made with it.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Error, FnArg, Ident, Pat, PatType, Result, ReturnType, Signature, Type, parse_quote};

use crate::machine::{self, Handler};
use crate::{assertions, names, stream_type, wire_type};

/// A method that can be called through a reference.
pub(crate) struct Method {
    pub(crate) name: Ident,
    /// Its doc comment.
    pub(crate) docs: Vec<Attribute>,
    /// `&self`.
    pub(crate) read: bool,
    /// `#[update]`.
    pub(crate) update: bool,
    /// `#[blocking]`: it runs on a thread that it may block.
    pub(crate) blocking: bool,
    /// Of a message of a state machine: who handles it in which states. None for a method that is called in all of them.
    pub(crate) handlers: Vec<Handler>,
    /// Where its receiver is written.
    pub(crate) receiver: Span,
    /// Whether it takes `cx: &Cx`.
    pub(crate) cx: bool,
    pub(crate) arguments: Vec<Argument>,
    /// What callers get.
    pub(crate) output: Type,
    /// Whether the handler returns a stream in its place.
    pub(crate) streams: bool,
    /// Whether the handler is an `async fn`.
    pub(crate) is_async: bool,
}

/// An argument of a method.
pub(crate) struct Argument {
    pub(crate) name: Ident,
    pub(crate) ty: Type,
    /// Its `#[serde(..)]`.
    pub(crate) serde: Vec<Attribute>,
}

impl Method {
    /// Whether a function may be a method: an `async fn`, one that returns a stream, or one that says that it blocks.
    pub(crate) fn may_be(attributes: &[Attribute], signature: &Signature) -> bool {
        let streams = |output: &Type| !matches!(stream_type::reply(output), Ok(None));
        let output = match &signature.output {
            ReturnType::Default => None,
            ReturnType::Type(_, output) => Some(&**output),
        };
        signature.asyncness.is_some() || output.is_some_and(streams) || attributes.iter().any(is_blocking)
    }

    /// Reads an `async fn`, or one that returns a stream, with a receiver. `this` is what `Self` stands for, where it stands for anything.
    pub(crate) fn parse(attributes: &[Attribute], signature: &Signature, this: Option<&Type>) -> Result<Self> {
        check_signature(attributes, signature)?;
        let mut inputs = signature.inputs.iter().peekable();
        let (read, receiver) = match inputs.next() {
            Some(FnArg::Receiver(receiver)) if receiver.reference.is_some() && receiver.colon_token.is_none() => {
                (receiver.mutability.is_none(), receiver.span())
            }
            other => {
                let message =
                    "an actor outlives its methods: take `&mut self` for an exclusive turn, `&self` for a read";
                return Err(Error::new(other.map_or_else(|| signature.span(), Spanned::span), message));
            }
        };
        let update = attributes.iter().find(|attribute| is_update(attribute));
        if let (Some(update), false) = (update, read) {
            let message = "an update of versioned state is enqueued beside others: take `&self`";
            return Err(Error::new_spanned(update, message));
        }
        if let Some(FnArg::Typed(first)) = inputs.peek() {
            wire_type::check_cx(&first.ty)?;
        }
        let cx = inputs.next_if(|input| matches!(input, FnArg::Typed(typed) if wire_type::is_cx(&typed.ty))).is_some();
        let mut arguments = Vec::new();
        for input in inputs {
            if let FnArg::Typed(typed) = input {
                arguments.push(Argument::parse(typed, this)?);
            }
        }
        let mut output = match &signature.output {
            ReturnType::Default => parse_quote!(()),
            ReturnType::Type(_, ty) => (**ty).clone(),
        };
        let stream = stream_type::reply(&output)?;
        let streams = stream.is_some();
        output = stream.unwrap_or(output);
        wire_type::check(&output, "a reply")?;
        match this {
            Some(this) => wire_type::name_self(&mut output, this),
            None => refuse_self(&output)?,
        }
        let docs = attributes.iter().filter(|attribute| attribute.path().is_ident("doc")).cloned().collect();
        let (name, is_async) = (signature.ident.clone(), signature.asyncness.is_some());
        let (update, handlers) = (update.is_some(), Vec::new());
        let blocking = attributes.iter().find(|attribute| is_blocking(attribute));
        if let Some(blocking) = blocking {
            let mistake = match () {
                () if this.is_none() => {
                    "a trait does not say on which thread its methods run: let the implementation await `cx.blocking`"
                }
                () if is_async => "a method that blocks its thread awaits nothing: remove `async`, or `#[blocking]`",
                () if read => "the actor goes to another thread while a method blocks: take `&mut self`",
                () if cx => {
                    "a method that blocks its thread has no context there: remove `cx`, or write an `async fn` that awaits `cx.blocking`"
                }
                () if streams => {
                    "a method that blocks its thread returns a value; a stream is read on the actor's thread"
                }
                () => "",
            };
            if !mistake.is_empty() {
                return Err(Error::new_spanned(blocking, mistake));
            }
        }
        let blocking = blocking.is_some();
        Ok(Self { name, docs, read, update, blocking, handlers, receiver, cx, arguments, output, streams, is_async })
    }

    /// The name on the wire.
    pub(crate) fn wire_name(&self) -> String {
        self.name.unraw().to_string()
    }

    /// The name of its message.
    pub(crate) fn variant(&self) -> Ident {
        Ident::new(&names::camel_case(&self.wire_name()), self.name.span())
    }

    /// The name of the struct of its arguments.
    pub(crate) fn arguments_name(&self, base: &Ident) -> Ident {
        names::join(base, &format!("{}Arguments", self.variant()))
    }

    /// Whether its handler's return value is a `Result`, as far as its name tells.
    pub(crate) fn fallible(&self) -> bool {
        wire_type::last_ident(&self.output).is_some_and(|name| name.to_string().ends_with("Result"))
    }

    /// `Reply` or `Error`, whichever is named: the type behind it, placed where the return type is written.
    pub(crate) fn end(&self, name: &str) -> TokenStream {
        let (outcome, name) = (self.outcome(), Ident::new(name, Span::call_site()));
        let end = quote!(<#outcome as ::greenroom::__private::Outcome>::#name);
        assertions::place(end, self.output.span())
    }

    /// The type that implements `Outcome`.
    fn outcome(&self) -> TokenStream {
        let output = &self.output;
        if self.fallible() { output.to_token_stream() } else { quote!(::greenroom::__private::Plain<#output>) }
    }
}

impl Argument {
    fn parse(typed: &PatType, this: Option<&Type>) -> Result<Self> {
        let Pat::Ident(pattern) = &*typed.pat else {
            let message = "give the argument a plain name: it is the name of a field on the wire";
            return Err(Error::new_spanned(&typed.pat, message));
        };
        wire_type::check(&typed.ty, "an argument")?;
        let mut ty = (*typed.ty).clone();
        match this {
            Some(this) => wire_type::name_self(&mut ty, this),
            None => refuse_self(&ty)?,
        }
        let serde = typed.attrs.iter().filter(|attribute| attribute.path().is_ident("serde")).cloned().collect();
        Ok(Self { name: pattern.ident.clone(), ty, serde })
    }
}

/// Removes from a method what only the macro understands.
pub(crate) fn strip(attributes: &mut Vec<Attribute>, signature: &mut Signature) {
    attributes.retain(|attribute| !is_update(attribute) && !is_blocking(attribute) && !machine::is_on(attribute));
    for input in &mut signature.inputs {
        if let FnArg::Typed(typed) = input {
            typed.attrs.retain(|attribute| !attribute.path().is_ident("serde"));
        }
    }
}

/// Refuses methods that cannot be told apart, and an interface without any.
pub(crate) fn check_set(methods: &[Method], owner: Span) -> Result<()> {
    if methods.is_empty() {
        return Err(Error::new(
            owner,
            "nobody could call this actor: write at least one `pub async fn` with `&self` or `&mut self`",
        ));
    }
    for (at, method) in methods.iter().enumerate() {
        if let Some(earlier) = methods[..at].iter().find(|earlier| earlier.variant() == method.variant()) {
            let message = format!("`{}` and `{}` differ by underscores only; rename one", earlier.name, method.name);
            return Err(Error::new_spanned(&method.name, message));
        }
    }
    Ok(())
}

/// Refuses methods that a reliable actor cannot have.
pub(crate) fn check_reliable(methods: &[Method]) -> Result<()> {
    if let Some(method) = methods.iter().find(|method| method.name == "create") {
        let message = "`create` is a method of every reference of a reliable actor; choose another name";
        return Err(Error::new_spanned(&method.name, message));
    }
    match methods.iter().find(|method| method.streams) {
        Some(method) => {
            let message = "a reliable actor returns no stream: its answers are recorded; return a value";
            Err(Error::new_spanned(&method.name, message))
        }
        None => Ok(()),
    }
}

/// `#[update]`: the method changes versioned state, although it takes `&self`.
fn is_update(attribute: &Attribute) -> bool {
    attribute.path().is_ident("update")
}

/// `#[blocking]`: the method blocks its thread, so that it gets one of its own.
pub(crate) fn is_blocking(attribute: &Attribute) -> bool {
    attribute.path().is_ident("blocking")
}

/// Refuses a name that the reference has itself.
pub(crate) fn check_name(name: &Ident) -> Result<()> {
    match RESERVED.iter().any(|reserved| name == reserved) {
        true => Err(Error::new_spanned(name, format!("`{name}` is a method of every reference; choose another name"))),
        false => Ok(()),
    }
}

fn check_signature(attributes: &[Attribute], signature: &Signature) -> Result<()> {
    let name = &signature.ident;
    check_name(name)?;
    if name == "activated" || name == "deactivating" {
        let message = format!("`{name}` is a hook that the runtime calls, nobody else: remove `pub`");
        return Err(Error::new_spanned(name, message));
    }
    if let Some(cfg) = attributes.iter().find(|attribute| attribute.path().is_ident("cfg")) {
        let message = "all nodes must know the same methods; put `#[cfg]` on the whole block, or inside the method";
        return Err(Error::new_spanned(cfg, message));
    }
    if !signature.generics.params.is_empty() {
        let message =
            "a method of an actor is not generic, as a message has one type; use an enum, or a method for each type";
        return Err(Error::new_spanned(&signature.generics, message));
    }
    if let Some(token) = &signature.unsafety {
        return Err(Error::new_spanned(token, "callers of an actor cannot keep a contract: make the method safe"));
    }
    Ok(())
}

fn refuse_self(ty: &Type) -> Result<()> {
    match wire_type::find_self(ty) {
        Some(span) => {
            Err(Error::new(span, "callers do not know which type implements the trait: name a type of its own"))
        }
        None => Ok(()),
    }
}

/// The methods that `..Ref` has itself.
const RESERVED: &[&str] = &["of", "me", "bind", "key", "id", "clone"];
