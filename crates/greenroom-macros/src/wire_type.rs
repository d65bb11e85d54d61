//! What may be written as the type of an argument or a reply: it must have a meaning outside of the `impl` block, and
//! nothing borrowed.

use proc_macro2::Span;
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{Error, Ident, Lifetime, Result, Type, TypeImplTrait, TypePath, TypeReference, parse_quote};

/// Checks the type of an argument or a reply, named by `role`.
pub(crate) fn check(ty: &Type, role: &str) -> Result<()> {
    let mut finder = Finder { role, error: None };
    finder.visit_type(ty);
    finder.error.map_or(Ok(()), Err)
}

/// Replaces `Self` by the type that it stands for.
pub(crate) fn name_self(ty: &mut Type, this: &Type) {
    NameSelf { this }.visit_type_mut(ty);
}

/// Where `Self` is written in the type.
pub(crate) fn find_self(ty: &Type) -> Option<Span> {
    struct FindSelf(Option<Span>);
    impl<'ast> Visit<'ast> for FindSelf {
        fn visit_ident(&mut self, name: &'ast Ident) {
            if name == "Self" {
                self.0.get_or_insert(name.span());
            }
        }
    }
    let mut finder = FindSelf(None);
    finder.visit_type(ty);
    finder.0
}

/// The identifier at the end of a type's path.
pub(crate) fn last_ident(ty: &Type) -> Option<&Ident> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|segment| &segment.ident),
        Type::Group(group) => last_ident(&group.elem),
        Type::Paren(paren) => last_ident(&paren.elem),
        _ => None,
    }
}

/// Whether the type is `&Cx`.
pub(crate) fn is_cx(ty: &Type) -> bool {
    matches!(ty, Type::Reference(reference)
        if reference.mutability.is_none() && last_ident(&reference.elem).is_some_and(|name| name == "Cx"))
}

/// Refuses a `Cx` that is not borrowed as it is lent.
pub(crate) fn check_cx(ty: &Type) -> Result<()> {
    let (inner, lent) = match ty {
        Type::Reference(reference) => (&*reference.elem, reference.mutability.is_none()),
        owned => (owned, false),
    };
    match last_ident(inner).is_some_and(|name| name == "Cx") && !lent {
        true => Err(Error::new_spanned(ty, "the turn lends its surroundings to the method: write `cx: &Cx`")),
        false => Ok(()),
    }
}

struct Finder<'a> {
    role: &'a str,
    error: Option<Error>,
}

impl Finder<'_> {
    fn found(&mut self, what: impl quote::ToTokens, message: &str) {
        let error = Error::new_spanned(what, format!("{} {message}", self.role));
        self.error.get_or_insert(error);
    }

    fn found_cx(&mut self, what: impl quote::ToTokens) {
        self.found(what, "cannot be a `Cx`; a method may take `cx: &Cx` first, before all arguments");
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_type_reference(&mut self, reference: &'ast TypeReference) {
        let owned = match &*reference.elem {
            Type::Slice(slice) => {
                let element = &slice.elem;
                format!("a `Vec<{}>`", quote::quote!(#element))
            }
            elem if last_ident(elem).is_some_and(|name| name == "str") => "a `String`".to_owned(),
            elem if last_ident(elem).is_some_and(|name| name == "Cx") => return self.found_cx(reference),
            _ => "an owned value".to_owned(),
        };
        self.found(reference, &format!("cannot be borrowed, as it moves to another actor; use {owned}"));
    }

    fn visit_type_path(&mut self, path: &'ast TypePath) {
        if path.path.segments.last().is_some_and(|last| last.ident == "Cx") {
            self.found_cx(path);
        }
        visit::visit_type_path(self, path);
    }

    fn visit_lifetime(&mut self, lifetime: &'ast Lifetime) {
        if lifetime.ident != "static" {
            self.found(lifetime, "cannot be borrowed, as it moves to another actor; use an owned type");
        }
    }

    fn visit_type_impl_trait(&mut self, ty: &'ast TypeImplTrait) {
        self.found(ty, "cannot be `impl Trait`, as a message has one type; name the type");
    }
}

struct NameSelf<'a> {
    this: &'a Type,
}

impl VisitMut for NameSelf<'_> {
    fn visit_type_mut(&mut self, ty: &mut Type) {
        visit_mut::visit_type_mut(self, ty);
        if let Type::Path(TypePath { qself: None, path }) = ty
            && path.segments.first().is_some_and(|first| first.ident == "Self")
        {
            let this = self.this;
            let rest = path.segments.iter().skip(1);
            *ty = if path.segments.len() == 1 { this.clone() } else { parse_quote!(<#this> #(::#rest)*) };
        }
    }
}
