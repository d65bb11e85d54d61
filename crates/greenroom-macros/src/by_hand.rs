//! Fields that are states of their own have their names from `#[derive(Actor)]`. An `impl Actor` by hand gives them none, so that
//! nothing of them would be loaded; the file that both are in tells it.

use proc_macro2::Ident;
use syn::{Attribute, Error, Fields, File, ImplItem, Item, ItemImpl, ItemStruct, Result};

use crate::{one_block, wire_type};

/// Refuses the block of the actor `name` if its file has an `impl Actor` by hand for it, and fields that need the derive. Without the
/// file nothing is looked at; a field without a name is refused when it is saved.
pub(crate) fn check(name: &Ident) -> Result<()> {
    let Some((text, _)) = one_block::file_of(name) else { return Ok(()) };
    let Some(field) = unnamed(&text, &name.to_string()) else { return Ok(()) };
    let message = format!(
        "`{field}` is a state of its own, which is loaded and saved by the name of its field, and only `#[derive(Actor)]` gives it \
         one: write that above `struct {name}` in place of `impl Actor for {name}`, and what a fresh actor is into `impl Default for \
         {name}`"
    );
    Err(Error::new(name.span(), message))
}

/// The first field of the actor `name` that is a state of its own, if `Actor` is implemented for it by hand. Most files are not parsed:
/// they have no such block.
fn unnamed(text: &str, name: &str) -> Option<String> {
    let begins = |line: &str| line.trim_start().starts_with("impl") && line.contains(&format!("Actor for {name}"));
    if !text.lines().any(begins) {
        return None;
    }
    let File { items, .. } = syn::parse_file(text).ok()?;
    in_module(&items, name)
}

fn in_module(items: &[Item], name: &str) -> Option<String> {
    let by_hand = items.iter().any(|item| matches!(item, Item::Impl(block) if is_by_hand(block, name)));
    let found = items.iter().find_map(|item| match item {
        Item::Struct(item) if by_hand && item.ident == name => state(item),
        _ => None,
    });
    found.or_else(|| {
        items.iter().find_map(|item| match item {
            Item::Mod(module) => module.content.as_ref().and_then(|(_, items)| in_module(items, name)),
            _ => None,
        })
    })
}

/// Whether it is `impl Actor for` the actor, is there in any case, and does not name its states by itself.
fn is_by_hand(block: &ItemImpl, name: &str) -> bool {
    let of_actor =
        block.trait_.as_ref().and_then(|(_, path, _)| path.segments.last()).is_some_and(|last| last.ident == "Actor");
    let named = wire_type::last_ident(&block.self_ty).is_some_and(|ident| ident == name);
    let names_states =
        block.items.iter().any(|item| matches!(item, ImplItem::Fn(function) if function.sig.ident == "stored"));
    let conditional = |attribute: &Attribute| attribute.path().is_ident("cfg");
    of_actor && named && !names_states && !block.attrs.iter().any(conditional)
}

/// The name of the first field that is a state of its own.
fn state(item: &ItemStruct) -> Option<String> {
    let Fields::Named(fields) = &item.fields else { return None };
    let is_state = |name: &Ident| name == "Stored" || name == "Versioned";
    let field = fields.named.iter().find(|field| wire_type::last_ident(&field.ty).is_some_and(is_state));
    field.and_then(|field| field.ident.as_ref()).map(Ident::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_that_no_derive_names_are_found() {
        let user = "struct User { seen: u64, profile: Stored<Profile> }";
        let by_hand = "impl greenroom::Actor for User {}";
        assert_eq!(unnamed(&format!("{user}\n{by_hand}"), "User").as_deref(), Some("profile"));
        assert_eq!(unnamed(&format!("mod a {{\n{user}\n{by_hand}\n}}"), "User").as_deref(), Some("profile"));
        for fine in [
            format!("#[derive(Actor)]\n{user}"),
            format!("struct User {{ seen: u64 }}\n{by_hand}"),
            format!("{user}\nimpl Actor for Users {{}}"),
            format!("{user}\n#[cfg(a)]\n{by_hand}"),
            format!("{user}\nimpl Actor for User {{\n    fn stored(&mut self) -> Vec<()> {{ Vec::new() }}\n}}"),
        ] {
            assert_eq!(unnamed(&fine, "User"), None, "{fine}");
        }
    }
}
