//! Return types of methods that answer with a stream: `impl Stream<Item = T>`, or a `Result` of one.

use syn::punctuated::Punctuated;
use syn::{
    Error, GenericArgument, PathArguments, Result, ReturnType, Signature, Type, TypeImplTrait, TypeParamBound,
    parse_quote,
};

/// What callers get for `output`, if that is a stream.
///
/// # Errors
/// For a stream that does not say what its items are.
pub(crate) fn reply(output: &Type) -> Result<Option<Type>> {
    let mut reply = output.clone();
    let Some(place) = find(&mut reply) else { return Ok(None) };
    let Type::ImplTrait(stream) = &*place else { return Ok(None) };
    let Some(item) = item(stream) else {
        let message = "say what the items are: `impl Stream<Item = T>`";
        return Err(Error::new_spanned(stream, message));
    };
    *place = parse_quote!(::greenroom::__private::ReplyStream<#item>);
    Ok(Some(reply))
}

/// Lets the stream that a method returns outlive the turn. In a trait there is nothing that it could capture by name.
pub(crate) fn outlive(signature: &mut Signature, in_trait: bool) {
    let ReturnType::Type(_, output) = &mut signature.output else { return };
    let Some(Type::ImplTrait(stream)) = find(output) else { return };
    let has = |bounds: &Punctuated<TypeParamBound, _>, name: &str| {
        bounds.iter().any(|bound| match bound {
            TypeParamBound::Trait(bound) => bound.path.segments.last().is_some_and(|last| last.ident == name),
            TypeParamBound::Lifetime(lifetime) => lifetime.ident == name,
            TypeParamBound::PreciseCapture(_) => name == "use",
            _ => false,
        })
    };
    if !has(&stream.bounds, "Send") {
        stream.bounds.push(parse_quote!(::core::marker::Send));
    }
    if !has(&stream.bounds, "static") {
        stream.bounds.push(parse_quote!('static));
    }
    if !in_trait && !has(&stream.bounds, "use") {
        stream.bounds.push(parse_quote!(use<>));
    }
}

/// The `impl Stream` in a return type: the whole of it, or the first part of a `Result`.
fn find(output: &mut Type) -> Option<&mut Type> {
    match output {
        Type::ImplTrait(stream) if stream.bounds.iter().any(is_stream) => Some(output),
        Type::Path(path) => {
            let last = path.path.segments.last_mut().filter(|last| last.ident.to_string().ends_with("Result"))?;
            let PathArguments::AngleBracketed(arguments) = &mut last.arguments else { return None };
            match arguments.args.first_mut() {
                Some(GenericArgument::Type(Type::ImplTrait(stream))) if !stream.bounds.iter().any(is_stream) => None,
                Some(GenericArgument::Type(stream @ Type::ImplTrait(_))) => Some(stream),
                _ => None,
            }
        }
        _ => None,
    }
}

fn is_stream(bound: &TypeParamBound) -> bool {
    matches!(bound, TypeParamBound::Trait(bound)
        if bound.path.segments.last().is_some_and(|last| last.ident == "Stream"))
}

fn item(stream: &TypeImplTrait) -> Option<&Type> {
    let bound = stream.bounds.iter().find_map(|bound| match bound {
        TypeParamBound::Trait(found) if is_stream(bound) => found.path.segments.last(),
        _ => None,
    })?;
    let PathArguments::AngleBracketed(arguments) = &bound.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::AssocType(item) if item.ident == "Item" => Some(&item.ty),
        _ => None,
    })
}
