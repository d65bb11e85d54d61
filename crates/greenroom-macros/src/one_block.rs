//! An actor has one block. Of two, the compiler would say that all that is written from them is there twice; the file that
//! both are in tells it in a sentence.

use std::fs;

use proc_macro2::Ident;
use syn::{Attribute, Error, File, Item, ItemImpl, Result};

use crate::wire_type;

/// Refuses the block of the actor `name` if the file has another one above it. Without the file, as in an editor, nothing is
/// looked at.
pub(crate) fn check(name: &Ident) -> Result<()> {
    let Some((text, line)) = file_of(name) else { return Ok(()) };
    let Some(first) = first_of_several(&text, &name.to_string()) else { return Ok(()) };
    if line <= first {
        return Ok(());
    }
    let message = format!(
        "`{name}` has an `#[actor]` block already, in line {first}: write all that messages call into that one; a block without \
         `#[actor]` may hold the rest"
    );
    Err(Error::new(name.span(), message))
}

/// The file that `name` stands in, and its line there; nothing without the file, as in an editor.
pub(crate) fn file_of(name: &Ident) -> Option<(String, usize)> {
    if !proc_macro::is_available() {
        return None;
    }
    let place = name.span().unwrap();
    let text = place.local_file().and_then(|file| fs::read_to_string(file).ok())?;
    Some((text, place.start().line()))
}

/// The line of the first block of the actor `name`, if a module has several. Most files are not parsed: they have one `impl`.
fn first_of_several(text: &str, name: &str) -> Option<usize> {
    let mut lines = text.lines().zip(1..).filter(|(line, _)| begins_block(line, name));
    let (_, first) = lines.next()?;
    lines.next()?;
    let File { items, .. } = syn::parse_file(text).ok()?;
    several(&items, name).then_some(first)
}

fn begins_block(line: &str, name: &str) -> bool {
    let rest = line.trim_start().strip_prefix("impl ").and_then(|rest| rest.trim_start().strip_prefix(name));
    rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
}

fn several(items: &[Item], name: &str) -> bool {
    let is_block = |item: &&Item| matches!(item, Item::Impl(block) if is_block(block, name));
    let within = |item: &Item| match item {
        Item::Mod(module) => module.content.as_ref().is_some_and(|(_, items)| several(items, name)),
        _ => false,
    };
    items.iter().filter(is_block).count() > 1 || items.iter().any(within)
}

/// Whether it is an actor's block that is there in any case.
fn is_block(block: &ItemImpl, name: &str) -> bool {
    let last = |attribute: &Attribute| attribute.path().segments.last().map(|last| last.ident.clone());
    let has = |name: &str| block.attrs.iter().filter_map(last).any(|last| last == name);
    let named = wire_type::last_ident(&block.self_ty).is_some_and(|ident| ident == name);
    block.trait_.is_none() && named && has("actor") && !has("cfg")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_blocks_are_those_of_one_module_that_are_there_together() {
        let twice = "#[actor]\nimpl Room {}\n\n#[greenroom::actor(idle = \"5m\")]\nimpl Room {}";
        assert_eq!(first_of_several(twice, "Room"), Some(2));
        for once in [
            "#[actor]\nimpl Room {}\nimpl Room {}",
            "#[actor]\nimpl Room {}\n#[actor]\nimpl Rooms {}",
            "#[cfg(a)]\n#[actor]\nimpl Room {}\n#[cfg(not(a))]\n#[actor]\nimpl Room {}",
            "mod a {\n#[actor]\nimpl Room {}\n}\nmod b {\n#[actor]\nimpl Room {}\n}",
        ] {
            assert_eq!(first_of_several(once, "Room"), None, "{once}");
        }
        assert_eq!(first_of_several(&format!("mod a {{\n{twice}\n}}"), "Room"), Some(3));
    }
}
