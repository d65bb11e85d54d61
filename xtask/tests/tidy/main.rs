//! Tidy: the rules of this house that neither the compiler nor a lint can check.
//!
//! Each rule is a function from the [`tree`] of tracked files to the sentences that say what is wrong. It comes with
//! two tests: the repository keeps it, and a small bad tree is caught.

mod calls;
mod claims;
mod docs;
mod files;
mod floors;
mod layers;
mod pairs;
mod protocols;
mod reach;
mod repeatable;
mod said;
mod source;
mod targets;
mod tree;
mod words;

/// Passes if no rule was broken, else fails with everything that was.
#[track_caller]
fn assert_clean(broken: &[String]) {
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

/// Passes if exactly one complaint was made and it speaks of `what`.
#[track_caller]
fn assert_caught(broken: &[String], what: &str) {
    assert!(broken.len() == 1 && broken[0].contains(what), "expected one complaint about `{what}`, got {broken:?}");
}
