//! Every crate says first what it is. (Docs on public items are the compiler's lint `missing_docs`.)

use crate::tree::Tree;
use crate::{assert_caught, assert_clean};

fn undocumented_crates(tree: &Tree) -> Vec<String> {
    let roots = tree.sources().filter(|(path, _)| path.ends_with("src/lib.rs") || path.ends_with("src/main.rs"));
    let silent = roots.filter(|(_, text)| !text.starts_with("//! "));
    silent.map(|(path, _)| format!("{path}: does not start with `//!` and what the crate is")).collect()
}

#[test]
fn every_crate_starts_with_what_it_is() {
    assert_clean(&undocumented_crates(&Tree::of_repository()));
}

#[test]
fn a_crate_without_a_word_is_caught() {
    assert_caught(&undocumented_crates(&Tree::of(&[("a/src/lib.rs", "pub mod b;\n")])), "a/src/lib.rs");
    assert_clean(&undocumented_crates(&Tree::of(&[("a/src/lib.rs", "//! Words.\n"), ("a/src/b.rs", "")])));
}
