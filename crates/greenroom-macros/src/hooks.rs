//! The hooks `activated`, `deactivating`, `migrating`, `migrated`, `ended`, `migrate` and `write_older`.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Error, FnArg, ImplItemFn, Result, ReturnType, Type};

use crate::assertions;
use crate::options::Options;
use crate::travel::Travel;
use crate::wire_type;

/// The hooks that an actor has.
#[derive(Default)]
pub(crate) struct Hooks {
    activated: Option<Hook>,
    deactivating: Option<Hook>,
    ended: Option<Hook>,
    pub(crate) migrating: Option<Travel>,
    pub(crate) migrated: Option<Travel>,
    /// Where `migrate` is written.
    migrate: Option<proc_macro2::Span>,
    /// Where `write_older` is.
    write_older: Option<proc_macro2::Span>,
}

struct Hook {
    /// What is passed after `self`.
    passed: Vec<TokenStream>,
    fallible: bool,
}

/// Whether `function` is named as a hook is.
pub(crate) fn is_hook(function: &ImplItemFn) -> bool {
    ["activated", "deactivating", "migrating", "migrated", "ended", "migrate", "write_older"]
        .iter()
        .any(|hook| function.sig.ident == hook)
}

impl Hooks {
    /// Notes `function`, which is named as a hook is.
    pub(crate) fn add(&mut self, function: &ImplItemFn) -> Result<()> {
        if function.sig.ident == "migrate" {
            self.migrate = Some(function.sig.ident.span());
            return check_migrate(function);
        }
        if function.sig.ident == "write_older" {
            self.write_older = Some(function.sig.ident.span());
            return check_write_older(function);
        }
        if function.sig.ident == "migrating" {
            self.migrating = Some(Travel::parse(function)?);
            return Ok(());
        }
        if function.sig.ident == "migrated" {
            self.migrated = Some(Travel::parse(function)?);
            return Ok(());
        }
        let hook = Hook::parse(function)?;
        if function.sig.ident == "activated" {
            self.activated = Some(hook);
        } else if hook.fallible {
            let message = "nobody waits for what the hook returns: return nothing";
            return Err(Error::new_spanned(&function.sig.output, message));
        } else if function.sig.ident == "ended" {
            self.ended = Some(hook);
        } else {
            self.deactivating = Some(hook);
        }
        Ok(())
    }

    /// The hooks' part of `Behaviour`.
    pub(crate) fn expand(&self) -> TokenStream {
        let (has_activated, has_deactivating) = (self.activated.is_some(), self.deactivating.is_some());
        let has_ended = self.ended.is_some();
        let activated = self.activated.as_ref().map(|Hook { passed, fallible }| {
            let end = if *fallible {
                quote!(.map_err(|error| ::std::string::ToString::to_string(&error)))
            } else {
                quote!(; ::core::result::Result::Ok(()))
            };
            quote! {
                async fn activated(
                    &mut self,
                    cx: &::greenroom::__private::Cx,
                ) -> ::core::result::Result<(), ::std::string::String> {
                    let _ = cx;
                    Self::activated(self, #(#passed),*).await #end
                }
            }
        });
        let deactivating = self.deactivating.as_ref().map(|Hook { passed, .. }| {
            quote! {
                async fn deactivating(&mut self, cx: &::greenroom::__private::Cx, why: ::greenroom::__private::Why) {
                    let _ = (cx, why);
                    Self::deactivating(self, #(#passed),*).await;
                }
            }
        });
        let ended = self.ended.as_ref().map(|Hook { passed, .. }| {
            quote! {
                async fn ended(&mut self, cx: &::greenroom::__private::Cx, ended: ::greenroom::__private::Ended) {
                    let _ = (cx, &ended);
                    Self::ended(self, #(#passed),*).await;
                }
            }
        });
        quote! {
            const ACTIVATED: bool = #has_activated;
            const DEACTIVATING: bool = #has_deactivating;
            const ENDED: bool = #has_ended;
            #activated
            #deactivating
            #ended
        }
    }
}

impl Hooks {
    /// Refuses the hooks that a reliable actor cannot have.
    pub(crate) fn check_reliable(&self) -> Result<()> {
        let others =
            [self.deactivating.is_some(), self.ended.is_some(), self.migrating.is_some(), self.migrated.is_some()];
        if others.contains(&true) {
            let message =
                "a reliable actor has the hook `activated` alone: what others do is not part of a turn's commit";
            return Err(Error::new(proc_macro2::Span::call_site(), message));
        }
        Ok(())
    }

    /// The implementation of `State` for a persistent `actor`; nothing for others.
    pub(crate) fn state(&self, actor: &Type, options: &Options) -> Result<TokenStream> {
        if !options.persistent {
            return match self.migrate {
                Some(span) => {
                    let message =
                        "`migrate` reads earlier versions of a persistent actor: write `#[actor(persistent)]`";
                    Err(Error::new(span, message))
                }
                None => Ok(TokenStream::new()),
            };
        }
        let writes = match (options.writes, self.write_older) {
            (Some(writes), Some(_)) => Some(quote! {
                const WRITES: u8 = #writes;
                fn write_older(
                    &self,
                    older: ::greenroom::__private::Older,
                ) -> ::core::result::Result<::greenroom::__private::Written, ::std::string::String> {
                    Self::write_older(self, older).map_err(|error| ::std::string::ToString::to_string(&error))
                }
            }),
            (None, None) => None,
            (Some(_), None) => {
                let message = "`writes` wants the hook `fn write_older(&self, older: Older) -> Result<Written, _>`";
                return Err(Error::new_spanned(actor, message));
            }
            (None, Some(span)) => {
                let message = "say which version it writes: `#[actor(persistent, version = 2, writes = 1)]`";
                return Err(Error::new(span, message));
            }
        };
        let version = options.version.unwrap_or(1);
        let migrate = self.migrate.map(|_| {
            quote! {
                fn migrate(old: ::greenroom::__private::Old<'_>) -> ::core::result::Result<Self, ::std::string::String> {
                    Self::migrate(old).map_err(|error| ::std::string::ToString::to_string(&error))
                }
            }
        });
        let state = assertions::state(actor);
        Ok(quote! {
            #state

            #[automatically_derived]
            impl ::greenroom::__private::State for #actor
            where
                for<'__state> #actor: ::greenroom::__private::Data,
            {
                const VERSION: u8 = #version;
                #writes
                #migrate
            }
        })
    }
}

fn check_migrate(function: &ImplItemFn) -> Result<()> {
    let signature = &function.sig;
    let one = signature.inputs.len() == 1 && signature.receiver().is_none();
    if signature.asyncness.is_some() || !one || !matches!(signature.output, ReturnType::Type(..)) {
        return Err(Error::new_spanned(signature, "the hook is `fn migrate(old: Old<'_>) -> Result<Self, _>`"));
    }
    Ok(())
}

fn check_write_older(function: &ImplItemFn) -> Result<()> {
    let signature = &function.sig;
    let two = signature.inputs.len() == 2 && signature.receiver().is_some_and(|this| this.mutability.is_none());
    if signature.asyncness.is_some() || !two || !matches!(signature.output, ReturnType::Type(..)) {
        let shape = "the hook is `fn write_older(&self, older: Older) -> Result<Written, _>`";
        return Err(Error::new_spanned(signature, shape));
    }
    Ok(())
}

impl Hook {
    fn parse(function: &ImplItemFn) -> Result<Self> {
        let signature = &function.sig;
        let (shape, last) = if signature.ident == "activated" {
            ("the hook is `async fn activated(&mut self, cx: &Cx)`; it may return a `Result<(), _>`", None)
        } else if signature.ident == "ended" {
            ("the hook is `async fn ended(&mut self, cx: &Cx, ended: Ended)`", Some(("Ended", quote!(ended))))
        } else {
            ("the hook is `async fn deactivating(&mut self, cx: &Cx, why: Why)`", Some(("Why", quote!(why))))
        };
        let mut inputs = signature.inputs.iter();
        let exclusive = matches!(inputs.next(), Some(FnArg::Receiver(this)) if this.reference.is_some() && this.mutability.is_some());
        if signature.asyncness.is_none() || !exclusive || !signature.generics.params.is_empty() {
            return Err(Error::new_spanned(signature, shape));
        }
        let mut passed = Vec::new();
        for input in inputs {
            passed.push(match input {
                FnArg::Typed(typed) if wire_type::is_cx(&typed.ty) => quote!(cx),
                FnArg::Typed(typed) => match &last {
                    Some((name, value)) if wire_type::last_ident(&typed.ty).is_some_and(|ty| ty == name) => {
                        value.clone()
                    }
                    _ => return Err(Error::new_spanned(typed, shape)),
                },
                other => return Err(Error::new_spanned(other, shape)),
            });
        }
        let fallible = match &signature.output {
            ReturnType::Default => false,
            ReturnType::Type(_, ty) => ty.to_token_stream().to_string() != "()",
        };
        Ok(Self { passed, fallible })
    }
}
