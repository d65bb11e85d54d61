//! Dispatch: from a message to the method that answers it.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Ident, Path, Type};

use crate::assertions::{self, at};
use crate::hooks::Hooks;
use crate::interface::Interface;
use crate::method::{Argument, Method};
use crate::options::Options;
use crate::{machine, travel};

/// The implementation of `Behaviour` for `actor`. `exclusive` and `read` are the bodies that run a message with `self`
/// and `cx`.
pub(crate) fn expand(
    actor: &Type,
    interface: &Path,
    options: &Options,
    hooks: &Hooks,
    [exclusive, read]: [TokenStream; 2],
) -> TokenStream {
    let state = hooks.state(actor, options).unwrap_or_else(syn::Error::into_compile_error);
    let travel = travel::expand(actor, hooks, options).unwrap_or_else(syn::Error::into_compile_error);
    let hooks = hooks.expand();
    let carried = options.migrate.then(|| assertions::carried(actor));
    let states = &options.states;
    let rehearsed = rehearsed(actor, options);
    let whole = assertions::asserted(&quote!(Self), &quote!(#actor::__STATE));
    let versions = options.persistent.then(|| {
        quote! {
            const VERSIONS: ::greenroom::__private::StateVersions = ::greenroom::__private::versions::<#whole>();
        }
    });
    let persistence = if options.reliable {
        Some(reliability(actor, interface))
    } else {
        options.persistent.then(|| persistence(&whole))
    };
    // What is wrong with the whole of a turn, such as a future that is not `Send`, is shown at the actor's name.
    let turns = quote_spanned! {at(actor.span())=>
        async fn exclusive(&mut self, cx: &::greenroom::__private::Cx, message: ::greenroom::__private::Message<Self>) {
            let _ = cx;
            #exclusive
        }

        async fn read(&self, cx: &::greenroom::__private::Cx, message: ::greenroom::__private::Message<Self>) {
            let _ = cx;
            #read
        }
    };
    quote! {
        #[automatically_derived]
        impl ::greenroom::__private::Behaviour for #actor {
            type Interface = #interface;
            const OPTIONS: ::greenroom::__private::Options = #options;
            const STATES: &'static [&'static str] = &[#(#states),*];
            #versions
            #turns
            #persistence
            #hooks
            #travel
            #rehearsed
        }
        #state
        #carried
    }
}

/// What an explorer asks of an actor: compiled where actors are explored, and nowhere else.
fn rehearsed(actor: &Type, options: &Options) -> TokenStream {
    let sound = options.invariant.as_ref().map(|sound| {
        // Checked by the compiler, and no dead code, where nobody asks.
        let holds = quote_spanned! {sound.span()=>
            const INVARIANT: fn(&Self) -> ::core::result::Result<(), ::std::string::String> = #sound;
        };
        quote!(#holds ::greenroom::__rehearsed! {
            const SOUND: ::core::option::Option<fn(&Self) -> ::core::result::Result<(), ::std::string::String>> =
                ::core::option::Option::Some(<Self as ::greenroom::__private::Behaviour>::INVARIANT);
        })
    });
    quote! {
        ::greenroom::__rehearsed! {
            const SHOW: ::core::option::Option<fn(&Self) -> ::std::string::String> = {
                #[allow(unused_imports)]
                use ::greenroom::__private::{Unshown as _, NoData as _};
                match ::greenroom::__private::Shown::<#actor>::SHOW {
                    ::core::option::Option::Some(show) => ::core::option::Option::Some(show),
                    ::core::option::Option::None => ::greenroom::__private::AsData::<#actor>::SHOW,
                }
            };
        }
        #sound
    }
}

/// What loads a reliable actor, and gives what a turn has changed to the turn's commit.
fn reliability(actor: &Type, interface: &Path) -> TokenStream {
    let message = "a reliable actor has no `Stored` or `Versioned` fields: what they hold is not written with the turn's \
                   commit; use `Register`, `Map`, `Queue`, `Set`, or a plain serde value";
    let states = quote!(<Self as ::greenroom::__private::Behaviour>::STATES);
    let asserted = assertions::asserted(&quote!(Self), &quote!(#interface::KEPT));
    quote! {
        async fn load(
            &mut self,
            cx: &::greenroom::__private::Cx,
        ) -> ::core::result::Result<(), ::greenroom::__private::StateError> {
            const { ::core::assert!(!<#actor as ::greenroom::__private::Actor>::STORED, #message) };
            ::greenroom::__private::load::<#asserted>(cx, self, #states)
        }

        async fn save_changed(
            &mut self,
            cx: &::greenroom::__private::Cx,
        ) -> ::core::result::Result<(), ::greenroom::__private::StateError> {
            ::greenroom::__private::collect::<#asserted>(cx, self)
        }
    }
}

/// What loads and saves a persistent actor: the whole of it, and its fields that are states of their own.
fn persistence(whole: &TokenStream) -> TokenStream {
    quote! {
        async fn load(
            &mut self,
            cx: &::greenroom::__private::Cx,
        ) -> ::core::result::Result<(), ::greenroom::__private::StateError> {
            ::greenroom::__private::Cx::load::<#whole>(cx, self).await
        }

        async fn refresh(
            &mut self,
            cx: &::greenroom::__private::Cx,
        ) -> ::core::result::Result<(), ::greenroom::__private::StateError> {
            ::greenroom::__private::Cx::refresh::<#whole>(cx, self).await
        }

        async fn save_changed(
            &mut self,
            cx: &::greenroom::__private::Cx,
        ) -> ::core::result::Result<(), ::greenroom::__private::StateError> {
            ::greenroom::__private::Cx::save_changed::<#whole>(cx, self).await
        }

        fn written(
            state: &str,
            json: &[u8],
            in_force: u8,
        ) -> ::core::option::Option<::core::result::Result<::greenroom::__private::Written, ::std::string::String>> {
            if state == "self" {
                return ::core::option::Option::Some(::greenroom::__private::written::<#whole>(json, in_force));
            }
            <Self as ::greenroom::__private::Actor>::written_field(state, json, in_force)
        }
    }
}

/// The expression that runs `message` by the methods that are reads, or by those that are not.
///
/// `this` is the receiver's expression, and `callee` the path that the methods are found at.
pub(crate) fn dispatch(interface: &Interface<'_>, read: bool, this: &TokenStream, callee: &TokenStream) -> TokenStream {
    let message = interface.message();
    let arms = interface.methods.iter().map(|method| {
        let variant = method.variant();
        if method.read != read {
            // The runtime brings it to the other one; here it would be dropped, which tells the caller so.
            return quote!(#message::#variant(..) => {});
        }
        // An argument's name is its field's, so without arguments the binding is not used.
        let arguments = if method.arguments.is_empty() { quote!(_) } else { quote!(arguments) };
        let answer = |name: &Ident, cx: bool| {
            if method.blocking {
                return on_a_thread(method, callee, this);
            }
            let outcome = outcome(method, callee, name, this, cx);
            quote! {
                ::greenroom::__private::ReplyTo::answer(reply, ::greenroom::__private::Outcome::into_result(#outcome))
            }
        };
        let handled = match (&*method.handlers, interface.machine && !read) {
            ([], false) => answer(&method.name, method.cx),
            ([], true) => machine::in_all_states(method, answer(&method.name, method.cx)),
            (handlers, _) => machine::by_state(method, handlers, answer),
        };
        quote!(#message::#variant(#arguments, reply) => { #handled; })
    });
    quote!(match message { #(#arms)* })
}

/// The expression that lets a method that blocks run on a thread of its own, and answers.
fn on_a_thread(method: &Method, callee: &TokenStream, this: &TokenStream) -> TokenStream {
    let outcome = outcome(method, callee, &method.name, &quote!(this), false);
    let running = quote_spanned! {at(method.name.span())=>
        ::greenroom::__private::on_a_thread(cx, #this, move |this| {
            ::greenroom::__private::Outcome::into_result(#outcome)
        })
    };
    quote!(::greenroom::__private::ReplyTo::answer(reply, #running.await))
}

/// What the method called `name` comes to.
fn outcome(method: &Method, callee: &TokenStream, name: &Ident, this: &TokenStream, cx: bool) -> TokenStream {
    let cx = cx.then(|| quote!(cx,));
    let fields = method.arguments.iter().map(|Argument { name, .. }| quote!(arguments.#name));
    let called = quote_spanned!(at(name.span())=> #callee::#name(#this, #cx #(#fields),*));
    let called = if method.is_async { quote!(#called.await) } else { called };
    let stream = quote!(::greenroom::__private::ReplyStream::of);
    match (method.fallible(), method.streams) {
        (true, false) => called,
        (true, true) => quote!(::core::result::Result::map(#called, #stream)),
        (false, false) => quote!(::greenroom::__private::Plain(#called)),
        (false, true) => quote!(::greenroom::__private::Plain(#stream(#called))),
    }
}
