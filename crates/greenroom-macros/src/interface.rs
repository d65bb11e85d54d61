//! What callers and actors share: the messages, their arguments, and the interface that names them.

use proc_macro2::{Literal, TokenStream};
use quote::quote;
use syn::{Ident, Type, Visibility};

use crate::method::{Argument, Method};
use crate::{assertions, names, signature};

/// An interface to be written.
pub(crate) struct Interface<'a> {
    /// What all its names begin with.
    pub(crate) base: &'a Ident,
    pub(crate) visibility: &'a Visibility,
    /// The kind's name on the wire.
    pub(crate) kind: String,
    /// Its version, and the oldest one whose callers are served.
    pub(crate) versions: [u16; 2],
    /// Whether its actors are reliable.
    pub(crate) reliable: bool,
    /// Whether they are state machines.
    pub(crate) machine: bool,
    /// The actor, where there is just one. Its arguments are then as visible as it is: private actors may take and return
    /// private types.
    pub(crate) owner: Option<&'a Type>,
    pub(crate) methods: &'a [Method],
}

impl Interface<'_> {
    /// The type that implements the runtime's `Interface`.
    pub(crate) fn name(&self) -> Ident {
        names::join(self.base, "Interface")
    }

    /// The enum of messages.
    pub(crate) fn message(&self) -> Ident {
        names::join(self.base, "Message")
    }

    /// The reference that calls it.
    pub(crate) fn reference(&self) -> Ident {
        names::join(self.base, "Ref")
    }

    /// Everything but the reference.
    pub(crate) fn expand(&self) -> TokenStream {
        let arguments = self.methods.iter().enumerate().map(|(index, method)| self.arguments(index, method));
        let message = self.message_enum();
        let interface = self.interface();
        quote!(#(#arguments)* #message #interface)
    }

    /// The type of an argument, a reply or an error, which is known to be plain data.
    fn data(&self, ty: &TokenStream) -> TokenStream {
        let interface = self.name();
        assertions::asserted(ty, &quote!(#interface::TRAVELS))
    }

    /// The arguments of one method, and what makes a message of them.
    fn arguments(&self, index: usize, method: &Method) -> TokenStream {
        let Self { base, visibility, .. } = self;
        let (interface, message) = (self.name(), self.message());
        let (name, variant) = (method.arguments_name(base), method.variant());
        let [reply, error] = ["Reply", "Error"].map(|end| self.data(&method.end(end)));
        let index = Literal::u16_suffixed(index as u16);
        let (parameter, of) = match self.owner {
            Some(owner) => {
                (quote!(<__Actor = #owner>), quote!(#[serde(skip)] __of: ::core::marker::PhantomData<fn() -> __Actor>,))
            }
            None => (quote!(), quote!()),
        };
        let read_only = (method.read && !method.update).then(|| {
            quote! {
                #[diagnostic::do_not_recommend]
                #[automatically_derived]
                impl ::greenroom::__private::ReadOnly for #name {}
            }
        });
        let fields = method.arguments.iter().map(|Argument { name, ty, serde }| {
            let ty = self.data(&quote!(#ty));
            quote!(#(#serde)* #name: #ty,)
        });
        quote! {
            #[doc(hidden)]
            #[allow(private_interfaces, unreachable_pub)]
            #[derive(::greenroom::__private::serde::Serialize, ::greenroom::__private::serde::Deserialize)]
            #[serde(crate = "::greenroom::__private::serde", bound = "")]
            #visibility struct #name #parameter { #(#fields)* #of }

            #[automatically_derived]
            impl ::greenroom::__private::Method for #name {
                type Interface = #interface;
                type Reply = #reply;
                type Error = #error;
                const INDEX: u16 = #index;

                fn into_message(
                    self,
                    reply: ::greenroom::__private::ReplyTo<Self::Reply, Self::Error>,
                ) -> #message {
                    #message::#variant(self, reply)
                }
            }

            #read_only
        }
    }

    fn message_enum(&self) -> TokenStream {
        let Self { base, visibility, methods, .. } = self;
        let name = self.message();
        let variants = methods.iter().map(|method| {
            let (variant, arguments) = (method.variant(), method.arguments_name(base));
            let [reply, error] = ["Reply", "Error"].map(|end| self.data(&method.end(end)));
            quote! {
                #variant(#arguments, ::greenroom::__private::ReplyTo<#reply, #error>)
            }
        });
        quote! {
            #[doc(hidden)]
            #[allow(private_interfaces, unreachable_pub)]
            #visibility enum #name { #(#variants,)* }
        }
    }

    fn interface(&self) -> TokenStream {
        let Self { base, visibility, kind, versions: [version, compatible], reliable, methods, .. } = self;
        let (name, message, reference) = (self.name(), self.message(), self.reference());
        let variants: Vec<Ident> = methods.iter().map(Method::variant).collect();
        let arguments: Vec<Ident> = methods.iter().map(|method| method.arguments_name(base)).collect();
        let indices: Vec<Literal> = (0..methods.len()).map(|index| Literal::u16_suffixed(index as u16)).collect();
        let wire_names = methods.iter().map(Method::wire_name);
        let reads = methods.iter().map(|method| method.read);
        let updates = methods.iter().map(|method| method.update);
        // What an error says is known where its type is.
        let replies = methods.iter().map(|method| match method.fallible() {
            true => {
                let error = self.data(&method.end("Error"));
                quote!(reply.saying(::greenroom::__private::Told::<#error>::SAYS))
            }
            false => quote!(reply),
        });
        let signatures = signature::expand(methods);
        let travels = assertions::travels(methods);
        let kept = self.owner.filter(|_| *reliable).map(assertions::kept);
        quote! {
            #[doc(hidden)]
            #[allow(unreachable_pub)]
            #visibility struct #name;

            impl #name {
                #travels
                #kept
            }

            #[automatically_derived]
            impl ::greenroom::__private::Interface for #name {
                type Message = #message;
                type Ref = #reference;
                const KIND: &'static str = #kind;
                const METHODS: &'static [::greenroom::__private::MethodInfo] =
                    &[#(::greenroom::__private::MethodInfo { name: #wire_names, read: #reads, update: #updates },)*];

                const VERSION: u16 = #version;
                const COMPATIBLE: u16 = #compatible;
                const RELIABLE: bool = #reliable;
                ::greenroom::__rehearsed! {
                    const INVENT: &'static [::greenroom::__private::Invent<Self>] =
                        &[#(::greenroom::__private::invent::<#arguments>,)*];
                }
                #signatures

                fn method(message: &#message) -> u16 {
                    match message {
                        #(#message::#variants(..) => #indices,)*
                    }
                }

                fn reply(message: &mut #message) -> &mut dyn ::greenroom::__private::AnyReply {
                    match message {
                        #(#message::#variants(_, reply) => reply,)*
                    }
                }

                fn encode(
                    message: &#message,
                    out: &mut ::greenroom::__private::BytesMut,
                ) -> ::core::result::Result<(), ::greenroom::__private::EncodeError> {
                    use ::greenroom::__private::{Codec, TYPE_VERSION, codec};
                    match message {
                        #(#message::#variants(arguments, _) =>
                            codec::encode(Codec::MessagePack, TYPE_VERSION, arguments, out),)*
                    }
                }

                fn decode(
                    method: u16,
                    payload: &[u8],
                    reply: ::greenroom::__private::WireReply,
                ) -> ::core::result::Result<
                    #message,
                    ::std::boxed::Box<(::greenroom::__private::DecodeError, ::greenroom::__private::WireReply)>,
                > {
                    #[allow(unused_imports)]
                    use ::greenroom::__private::{Method, Never, ReplyTo, Untold as _, codec};
                    let error = match method {
                        #(#indices => match codec::decode::<#arguments>(payload) {
                            ::core::result::Result::Ok(arguments) => {
                                return ::core::result::Result::Ok(arguments.into_message(ReplyTo::wire(#replies)));
                            }
                            ::core::result::Result::Err(error) => error,
                        },)*
                        // No such method: nothing can be its arguments.
                        _ => match codec::decode::<Never>(payload) {
                            ::core::result::Result::Ok(never) => match never {},
                            ::core::result::Result::Err(error) => error,
                        },
                    };
                    ::core::result::Result::Err(::std::boxed::Box::new((error, reply)))
                }
            }
        }
    }
}
