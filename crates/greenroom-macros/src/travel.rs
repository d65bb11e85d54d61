//! The hooks `migrating` and `migrated`, and how actors go to another node.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Error, FnArg, ImplItemFn, Result, ReturnType, Type};

use crate::hooks::Hooks;
use crate::options::Options;
use crate::{assertions, wire_type};

/// One of the two hooks by which an actor carries what it holds to another node.
pub(crate) struct Travel {
    span: proc_macro2::Span,
    passed: Vec<TokenStream>,
    /// The type of what is carried, for the hook that takes it.
    carried: Option<TokenStream>,
}

impl Travel {
    pub(crate) fn parse(function: &ImplItemFn) -> Result<Self> {
        let signature = &function.sig;
        let arrives = signature.ident == "migrated";
        let shape = if arrives {
            "the hook is `async fn migrated(&mut self, cx: &Cx, carried: C)`, with what `migrating` returns"
        } else {
            "the hook is `async fn migrating(&mut self, cx: &Cx) -> C`, with a `C` that serde knows"
        };
        let wrong = || Error::new_spanned(signature, shape);
        let mut inputs = signature.inputs.iter();
        let exclusive = match inputs.next() {
            Some(FnArg::Receiver(this)) => this.reference.is_some() && this.mutability.is_some(),
            _ => false,
        };
        let returns = matches!(signature.output, ReturnType::Type(..));
        if signature.asyncness.is_none() || !exclusive || !signature.generics.params.is_empty() || returns == arrives {
            return Err(wrong());
        }
        let mut passed = Vec::new();
        let mut carried = None;
        for input in inputs {
            passed.push(match input {
                FnArg::Typed(typed) if wire_type::is_cx(&typed.ty) => quote!(cx),
                FnArg::Typed(typed) if arrives && carried.is_none() => {
                    carried = Some(typed.ty.to_token_stream());
                    quote!(::greenroom::__private::carried(carried)?)
                }
                other => return Err(Error::new_spanned(other, shape)),
            });
        }
        if arrives && carried.is_none() {
            return Err(wrong());
        }
        Ok(Self { span: signature.ident.span(), passed, carried })
    }
}

/// How the actor goes to another node: by its hooks, with the whole of it if it is to `migrate`, or by the store.
pub(crate) fn expand(actor: &Type, hooks: &Hooks, options: &Options) -> Result<TokenStream> {
    let carry = quote!(::greenroom::__private::carry);
    let (carry, take, carried) = match (&hooks.migrating, &hooks.migrated) {
        (None, None) if options.migrate => {
            let whole = assertions::asserted(&quote!(Self), &quote!(#actor::__CARRIED));
            let take = quote!(*self = ::greenroom::__private::carried::<#whole>(carried)?);
            (quote!(#carry::<#whole>(&*self)), take, whole)
        }
        (None, None) if options.persistent => {
            return Ok(quote!(
                const TRAVELS: ::greenroom::__private::Travels = ::greenroom::__private::Travels::ByStore;
            ));
        }
        (None, None) => return Ok(TokenStream::new()),
        (Some(out), Some(taken)) if !options.migrate => {
            let (packed, taken, carried) = (&out.passed, &taken.passed, &taken.carried);
            (
                quote!(#carry(&Self::migrating(self, #(#packed),*).await)),
                quote!(Self::migrated(self, #(#taken),*).await),
                quote!(#carried),
            )
        }
        (Some(one), Some(_)) => {
            let message = "`#[actor(migrate)]` carries all fields: leave it out, or `migrating` and `migrated`";
            return Err(Error::new(one.span, message));
        }
        (Some(one), None) | (None, Some(one)) => {
            let message = "`migrating` and `migrated` belong together: what the one returns the other takes";
            return Err(Error::new(one.span, message));
        }
    };
    Ok(quote! {
        const TRAVELS: ::greenroom::__private::Travels = ::greenroom::__private::Travels::Carrying;

        async fn migrating(
            &mut self,
            cx: &::greenroom::__private::Cx,
        ) -> ::core::result::Result<::greenroom::__private::Bytes, ::std::string::String> {
            let _ = cx;
            #carry
        }

        fn takes(carried: &[u8]) -> ::core::result::Result<(), ::std::string::String> {
            ::greenroom::__private::carried::<#carried>(carried).map(::core::mem::drop)
        }

        async fn migrated(
            &mut self,
            cx: &::greenroom::__private::Cx,
            carried: &[u8],
        ) -> ::core::result::Result<(), ::std::string::String> {
            let _ = cx;
            #take;
            ::core::result::Result::Ok(())
        }
    })
}
