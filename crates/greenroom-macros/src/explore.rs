//! `#[explore]`: a test of actors, run under many schedules.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Error, Expr, Ident, ItemFn, Path, Result, Token};

use crate::options::unknown;

/// What stands in the brackets.
#[derive(Default)]
struct Asked {
    /// The kinds that are registered.
    kinds: Vec<Path>,
    /// What equips the node otherwise.
    with: Option<Expr>,
    /// The other options, as calls of the builder's methods.
    calls: Vec<TokenStream>,
    /// The call that makes it a test of a whole cluster, behind those, and what goes wrong there, behind that.
    cluster: Option<TokenStream>,
    faults: Option<TokenStream>,
}

impl Parse for Asked {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut asked = Self::default();
        let mut written: Vec<Ident> = Vec::new();
        while !input.is_empty() {
            let path: Path = input.parse()?;
            let value: Option<Expr> = if input.peek(Token![=]) {
                input.parse::<Token![=]>()?;
                Some(input.parse()?)
            } else {
                None
            };
            asked.take(path, value, &mut written)?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        if asked.kinds.is_empty() && asked.with.is_none() {
            let message = "name the kinds that the test needs, `#[explore(Account, Teller)]`, or `with = ` a function that \
                           registers them: `fn(Builder) -> Builder`";
            return Err(input.error(message));
        }
        Ok(asked)
    }
}

impl Asked {
    fn take(&mut self, path: Path, value: Option<Expr>, written: &mut Vec<Ident>) -> Result<()> {
        let begins_small = |name: &Ident| name.to_string().starts_with(char::is_lowercase);
        let Some(name) = path.get_ident().filter(|name| value.is_some() || begins_small(name)).cloned() else {
            self.kinds.push(path);
            return Ok(());
        };
        if written.contains(&name) {
            return Err(Error::new_spanned(&name, format!("`{name}` is written twice")));
        }
        match value {
            Some(with) if name == "with" => self.with = Some(with),
            Some(value) if VALUES.iter().any(|known| name == known) => {
                let call = quote_spanned!(name.span()=> .#name(#value));
                match name.to_string().as_str() {
                    "cluster" => self.cluster = Some(call),
                    "faults" => self.faults = Some(call),
                    _ => self.calls.push(call),
                }
            }
            None if VALUES.iter().any(|known| name == known) => {
                return Err(Error::new_spanned(&name, format!("`{name}` wants a value: write `{name} = ..`")));
            }
            _ => {
                let known: Vec<&str> = ["with"].iter().chain(VALUES).copied().collect();
                return Err(unknown(&path, &known));
            }
        }
        written.push(name);
        Ok(())
    }
}

/// A test that explores the function.
pub(crate) fn expand(asked: TokenStream, function: ItemFn) -> TokenStream {
    let asked = match check(&function).and_then(|()| syn::parse2::<Asked>(asked)) {
        Ok(asked) => asked,
        Err(error) => {
            let error = error.into_compile_error();
            return quote!(#error #[allow(dead_code)] #function);
        }
    };
    let Asked { kinds, with, calls, cluster, faults } = asked;
    let (name, attributes) = (&function.sig.ident, &function.attrs);
    let (visibility, mut body) = (&function.vis, function.clone());
    body.attrs.clear();
    let with = with.map(|with| quote_spanned!(with.span()=> let builder = (#with)(builder);));
    quote! {
        #(#attributes)*
        #[::core::prelude::v1::test]
        #visibility fn #name() {
            #body
            ::greenroom_explore::Explore::of(|builder| {
                #with
                builder #(.register::<#kinds>())*
            })
            #(#calls)*
            #cluster
            #faults
            .run(#name);
        }
    }
}

fn check(function: &ItemFn) -> Result<()> {
    let signature = &function.sig;
    if signature.asyncness.is_none() || signature.inputs.len() != 1 {
        let message = "a test that is explored is an `async fn` that takes its world: `async fn name(world: World)`";
        return Err(Error::new_spanned(signature, message));
    }
    Ok(())
}

/// Options with a value: each is a method of `Explore`.
const VALUES: &[&str] = &[
    "schedules",
    "seconds",
    "steps",
    "seed",
    "strategy",
    "replay",
    "faults",
    "nodes",
    "timers",
    "patience",
    "threads",
    "exhaustive",
    "deadlocks",
    "panics",
    "cluster",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn written(asked: TokenStream) -> String {
        let function = syn::parse_quote!(
            async fn name(world: World) {}
        );
        expand(asked, function).to_string()
    }

    #[test]
    fn kinds_are_registered_and_options_are_methods() {
        let text = written(quote!(Teller, bank::Account, schedules = 500, seed = 7));
        assert!(text.contains(". register :: < Teller > () . register :: < bank :: Account > ()"), "{text}");
        assert!(text.contains(". schedules (500) . seed (7)"), "{text}");
        assert!(written(quote!(with = app::kinds)).contains("(app :: kinds) (builder)"));
    }

    #[test]
    fn what_goes_wrong_in_a_cluster_is_said_of_the_cluster() {
        let text = written(quote!(Teller, faults = Faults::rough(), cluster = 3, schedules = 20));
        assert!(text.contains(". schedules (20) . cluster (3) . faults (Faults :: rough ()) . run (name)"), "{text}");
    }

    #[test]
    fn what_is_not_known_is_refused_with_the_nearest() {
        assert!(written(quote!(Teller, schedule = 5)).contains("did you mean `schedules`?"));
        assert!(written(quote!(Teller, seed)).contains("wants a value"));
        assert!(written(quote!(Teller, seed = 1, seed = 2)).contains("twice"));
        assert!(written(quote!(schedules = 5)).contains("name the kinds"));
    }

    #[test]
    fn a_test_takes_its_world() {
        let expanded = expand(
            quote!(Teller),
            syn::parse_quote!(
                fn name() {}
            ),
        );
        assert!(expanded.to_string().contains("takes its world"));
    }
}
