//! What a kind says of its methods to people and to other languages: static data, so that users' crates compile no code for it.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, Expr, ExprLit, Lit, LitStr, Meta, PathArguments, Type};

use crate::machine::Handler;
use crate::method::{Argument, Method};
use crate::wire_type;

/// The constant that has the signatures of `methods`, in their order.
pub(crate) fn expand(methods: &[Method]) -> TokenStream {
    let signatures = methods.iter().map(signature);
    quote! {
        const SIGNATURES: &'static [::greenroom::__private::Signature] = {
            #[allow(unused_imports)]
            use ::greenroom::__private::{Parameter, Schemed, Signature, Typed, Unschemed as _, Untyped as _, type_of};
            &[#(#signatures),*]
        };
    }
}

/// The first paragraph of a doc comment.
pub(crate) fn paragraph(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter(|attribute| attribute.path().is_ident("doc")).filter_map(text);
    let lines: Vec<String> =
        lines.flat_map(|text| text.split('\n').map(|line| line.trim().to_owned()).collect::<Vec<_>>()).collect();
    let said = lines.iter().skip_while(|line| line.is_empty()).take_while(|line| !line.is_empty());
    said.map(String::as_str).collect::<Vec<_>>().join(" ")
}

fn text(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(pair) => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

fn signature(method: &Method) -> TokenStream {
    let (doc, streams) = (paragraph(&method.docs), method.streams);
    let [written, error_written] = match method.fallible().then(|| ends(&method.output)) {
        Some(ends) => ends,
        None => [written(&method.output), String::new()],
    };
    let mut named = true;
    let parameters: Vec<TokenStream> =
        method.arguments.iter().filter_map(|argument| parameter(argument, &mut named)).collect();
    let [reply, error] = ["Reply", "Error"].map(|end| type_of(&method.end(end)));
    let handled = method.handlers.iter().flat_map(handled);
    quote! {
        Signature {
            doc: #doc,
            parameters: &[#(#parameters),*],
            named: #named,
            written: #written,
            reply: #reply,
            error: #error,
            error_written: #error_written,
            streams: #streams,
            handled: &[#(#handled),*],
        }
    }
}

/// An argument as it comes, unless it never does. If what comes has other names than those that are written here, `named` becomes false.
fn parameter(argument: &Argument, named: &mut bool) -> Option<TokenStream> {
    let Argument { name, ty, serde } = argument;
    let mut wire_name = syn::ext::IdentExt::unraw(name).to_string();
    let (mut plain, mut skipped, mut has_default) = (true, false, false);
    for attribute in serde {
        let read = attribute.parse_nested_meta(|meta| {
            let word = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
            match &*word {
                "default" => has_default = true,
                "skip" | "skip_deserializing" => skipped = true,
                "with" | "deserialize_with" => plain = false,
                "flatten" => *named = false,
                _ => {}
            }
            if meta.input.peek(syn::token::Paren) {
                // `rename(deserialize = "..")`
                let inner;
                syn::parenthesized!(inner in meta.input);
                let _: TokenStream = inner.parse()?;
                *named &= word != "rename";
            } else if let Ok(value) = meta.value() {
                let value: Expr = value.parse()?;
                if let ("rename", Expr::Lit(ExprLit { lit: Lit::Str(text), .. })) = (&*word, value) {
                    wire_name = text.value();
                }
            }
            Ok(())
        });
        // What serde does not understand it says itself.
        *named &= read.is_ok();
    }
    if skipped {
        return None;
    }
    // Without a function of its own, serde reads a missing `Option` as `None`.
    let optional = plain && wire_type::last_ident(ty).is_some_and(|name| name == "Option");
    let required = !has_default && !optional;
    let written = written(ty);
    let ty = if plain { type_of(&ty.to_token_stream()) } else { quote!(type_of(None, None)) };
    Some(quote!(Parameter { name: #wire_name, written: #written, ty: #ty, required: #required }))
}

fn type_of(ty: &TokenStream) -> TokenStream {
    quote!(type_of(Typed::<#ty>::TYPE, Schemed::<#ty>::SCHEMA))
}

fn handled(handler: &Handler) -> Vec<TokenStream> {
    let all = |states: &[LitStr], how: &str| -> Vec<TokenStream> {
        states.iter().map(|state| quote!((#state, #how))).collect()
    };
    let mut said = match handler.states.is_empty() {
        true => vec![quote!(("*", "run"))],
        false => all(&handler.states, "run"),
    };
    said.extend(all(&handler.defer, "defer"));
    said.extend(all(&handler.ignore, "ignore"));
    said
}

/// What stands in the brackets of a `Result<Reply, Error>`; nothing for what does not stand there.
fn ends(output: &Type) -> [String; 2] {
    let arguments = match output {
        Type::Path(path) => path.path.segments.last().map(|last| &last.arguments),
        _ => None,
    };
    let Some(PathArguments::AngleBracketed(arguments)) = arguments else { return [String::new(), String::new()] };
    let types: Vec<String> = arguments.args.iter().map(written).collect();
    [0, 1].map(|at| types.get(at).cloned().unwrap_or_default())
}

/// A type as people write it.
fn written(ty: &impl ToTokens) -> String {
    let mut text = ty.to_token_stream().to_string();
    for (spaced, close) in
        [(" < ", "<"), (" >", ">"), ("< ", "<"), (" <", "<"), (" ::", "::"), (":: ", "::"), (" ,", ","), ("& ", "&")]
    {
        text = text.replace(spaced, close);
    }
    text
}
