//! `#[on(message, state = "..")]`: the handlers of a reliable state machine.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Expr, Ident, ImplItemFn, LitStr, Meta, Result, Token, Type};

use crate::method::{self, Method};
use crate::{names, options};

/// The messages of a state machine, as they are gathered.
#[derive(Default)]
pub(crate) struct Machine {
    /// One for each message.
    pub(crate) methods: Vec<Method>,
    states: Vec<LitStr>,
    /// Where the first handler is written.
    first: Option<Ident>,
}

/// A function that handles a message in some states.
pub(crate) struct Handler {
    function: Ident,
    cx: bool,
    pub(crate) states: Vec<LitStr>,
    pub(crate) defer: Vec<LitStr>,
    pub(crate) ignore: Vec<LitStr>,
}

/// Whether it is `#[on(..)]`.
pub(crate) fn is_on(attribute: &Attribute) -> bool {
    attribute.path().is_ident("on")
}

impl Machine {
    /// Takes in a function with `#[on(..)]`.
    pub(crate) fn add(&mut self, on: &Attribute, function: &ImplItemFn, actor: &Type) -> Result<()> {
        let (message, mut handler) = parse(on, &function.sig.ident)?;
        self.first.get_or_insert_with(|| function.sig.ident.clone());
        method::check_name(&message)?;
        if function.sig.asyncness.is_none() {
            return Err(Error::new_spanned(function.sig.fn_token, "a handler is an `async fn`"));
        }
        let mut method = Method::parse(&function.attrs, &function.sig, Some(actor))?;
        handler.cx = method.cx;
        let named = [&handler.states, &handler.defer, &handler.ignore];
        self.states.extend(named.into_iter().flatten().cloned());
        match self.methods.iter_mut().find(|known| known.name == message) {
            Some(known) => {
                if shape(known) != shape(&method) {
                    let text = format!(
                        "another handler of `{message}` takes or returns something else: a message has one type; let both have \
                         the same receiver, arguments and return type"
                    );
                    return Err(Error::new_spanned(&function.sig.ident, text));
                }
                check_states(&message, known.handlers.iter().chain([&handler]))?;
                known.handlers.push(handler);
            }
            None => {
                check_states(&message, [&handler].into_iter())?;
                method.name = message;
                method.handlers.push(handler);
                self.methods.push(method);
            }
        }
        Ok(())
    }

    /// Its states, the first one first; none if it is no state machine.
    pub(crate) fn states(&self, start: Option<&LitStr>) -> Result<Vec<String>> {
        let Some(start) = start else {
            return match &self.first {
                Some(function) => {
                    let message = "handlers by state are those of a reliable state machine: write `#[actor(reliable, start = \
                                   \"..\")]`";
                    Err(Error::new_spanned(function, message))
                }
                None => Ok(Vec::new()),
            };
        };
        let mut states = vec![start.value()];
        for state in &self.states {
            if !states.contains(&state.value()) {
                states.push(state.value());
            }
        }
        let known: Vec<String> = self.states.iter().map(LitStr::value).collect();
        if !known.contains(&start.value()) {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let remedy = match names::nearest(&start.value(), &known) {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("write `#[on(.., state = {:?})]` above a function", start.value()),
            };
            return Err(Error::new_spanned(start, format!("nothing is handled in the first state; {remedy}")));
        }
        Ok(states)
    }
}

/// What all handlers of a message have in common.
fn shape(method: &Method) -> String {
    let arguments = method.arguments.iter().map(|argument| {
        let (name, ty) = (&argument.name, &argument.ty);
        quote!(#name: #ty).to_string()
    });
    let arguments: Vec<String> = arguments.collect();
    format!("{} {arguments:?} {}", method.read, method.output.to_token_stream())
}

/// Refuses two words about one state.
fn check_states<'a>(message: &Ident, handlers: impl Iterator<Item = &'a Handler>) -> Result<()> {
    let (mut seen, mut any): (Vec<String>, bool) = (Vec::new(), false);
    for handler in handlers {
        for state in handler.states.iter().chain(&handler.defer).chain(&handler.ignore) {
            if seen.contains(&state.value()) {
                let text =
                    format!("`{message}` has two handlers, or words, for the state {:?}; remove one", state.value());
                return Err(Error::new_spanned(state, text));
            }
            seen.push(state.value());
        }
        if handler.states.is_empty() && std::mem::replace(&mut any, true) {
            let text = format!("`{message}` has two handlers for all other states; name their states");
            return Err(Error::new_spanned(&handler.function, text));
        }
    }
    Ok(())
}

fn parse(on: &Attribute, function: &Ident) -> Result<(Ident, Handler)> {
    let metas = on.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)?;
    let mut message = None;
    let (function, cx) = (function.clone(), false);
    let mut handler = Handler { function, cx, states: Vec::new(), defer: Vec::new(), ignore: Vec::new() };
    for meta in &metas {
        match meta {
            Meta::Path(path) if message.is_none() && path.get_ident().is_some() => message = path.get_ident().cloned(),
            Meta::NameValue(pair) if pair.path.is_ident("state") => handler.states.extend(named(&pair.value)?),
            Meta::NameValue(pair) if pair.path.is_ident("defer") => handler.defer.extend(named(&pair.value)?),
            Meta::NameValue(pair) if pair.path.is_ident("ignore") => handler.ignore.extend(named(&pair.value)?),
            other => {
                let path = other.path();
                let known = ["state", "defer", "ignore"];
                if message.is_some() && !known.iter().any(|known| path.is_ident(known)) {
                    return Err(options::unknown(path, &known));
                }
                let text = "write `#[on(message, state = \"..\")]`, with `defer = \"..\"` and `ignore = \"..\"` for other states";
                return Err(Error::new_spanned(other, text));
            }
        }
    }
    let message = message.ok_or_else(|| Error::new_spanned(on, "name the message: `#[on(word, state = \"..\")]`"))?;
    Ok((message, handler))
}

/// One state, or several in brackets.
fn named(value: &Expr) -> Result<Vec<LitStr>> {
    match value {
        Expr::Array(array) => array.elems.iter().map(options::text).collect(),
        one => Ok(vec![options::text(one)?]),
    }
}

/// What runs a message by the state that its actor is in.
pub(crate) fn by_state(
    method: &Method,
    handlers: &[Handler],
    answer: impl Fn(&Ident, bool) -> TokenStream,
) -> TokenStream {
    let name = method.wire_name();
    let arms = handlers.iter().map(|handler| {
        let Handler { function, cx, states, defer, ignore } = handler;
        let answer = (!states.is_empty()).then(|| {
            let answer = answer(function, *cx);
            quote!(#(#states)|* => #answer,)
        });
        let defer =
            (!defer.is_empty()).then(|| quote!(#(#defer)|* => ::greenroom::__private::defer(cx, reply, #name),));
        let ignore =
            (!ignore.is_empty()).then(|| quote!(#(#ignore)|* => ::greenroom::__private::ignore(cx, reply, #name),));
        quote!(#answer #defer #ignore)
    });
    let any = handlers.iter().find(|handler| handler.states.is_empty()).map(|handler| {
        let answer = answer(&handler.function, handler.cx);
        quote!(other if ::greenroom::__private::is_known(cx, other) => #answer,)
    });
    quote! {
        let state = ::greenroom::__private::state(cx);
        match &*state {
            #(#arms)*
            #any
            _ => ::greenroom::__private::unhandled(cx, reply, #name),
        }
    }
}

/// What runs a method that is called in all states, if this program knows the one that its actor is in.
pub(crate) fn in_all_states(method: &Method, answer: TokenStream) -> TokenStream {
    let name = method.wire_name();
    quote! {
        if ::greenroom::__private::is_known(cx, &::greenroom::__private::state(cx)) {
            #answer
        } else {
            ::greenroom::__private::unhandled(cx, reply, #name)
        }
    }
}
