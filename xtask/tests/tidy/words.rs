//! Words that mean unfinished work, and code that was put into comments.

use crate::source::{Source, has_word};
use crate::tree::Tree;
use crate::{assert_caught, assert_clean};

/// Macros that stand where code is missing, or that were left behind by a search for a bug.
const MACROS: &[&str] = &["dbg!", "todo!", "unimplemented!"];

/// Notes to oneself: what is missing belongs into an issue.
const NOTES: &[&str] = &["TODO", "FIXME", "XXX", "HACK"];

fn unfinished_work(tree: &Tree) -> Vec<String> {
    let mut broken = Vec::new();
    for (path, text) in tree.sources() {
        for (number, line) in Source::read(text).lines() {
            let macros = MACROS.iter().filter(|word| has_word(&line.code, word) || has_word(&line.comment, word));
            let notes = NOTES.iter().filter(|word| has_word(&line.comment, word));
            broken.extend(
                macros.chain(notes).map(|word| format!("{path}:{number}: `{word}`; finish it or open an issue")),
            );
        }
    }
    broken
}

fn commented_out_code(tree: &Tree) -> Vec<String> {
    let mut broken = Vec::new();
    for (path, text) in tree.sources() {
        for (number, line) in Source::read(text).lines() {
            if line.comment.strip_prefix("//").is_some_and(is_code) {
                broken.push(format!("{path}:{number}: code in a comment; delete it, git remembers"));
            }
        }
    }
    broken
}

/// Whether the comment ends like a statement or a block and has the marks of code in it.
fn is_code(comment: &str) -> bool {
    const STARTS: &[&str] = &["#[", "fn ", "impl ", "let ", "pub ", "return ", "struct ", "use "];
    const MARKS: &[&str] = &[" = ", " += ", "::", "->", "=>", ".await", "();", "?;", "));", "&mut "];
    let text = comment.trim();
    if comment.starts_with(['/', '!']) || !text.ends_with([';', '{', '}', ']']) {
        return false;
    }
    STARTS.iter().any(|start| text.starts_with(start))
        || (!text.ends_with(']') && MARKS.iter().any(|mark| text.contains(mark)))
}

#[test]
fn no_source_holds_unfinished_work() {
    assert_clean(&unfinished_work(&Tree::of_repository()));
}

#[test]
fn unfinished_work_is_caught_in_code_and_comments_but_not_in_strings() {
    let caught = |line: &str| unfinished_work(&Tree::of(&[("a/src/lib.rs", line)]));
    for word in MACROS {
        assert_caught(&caught(&format!("fn f() {{ {word}() }}")), word);
    }
    for word in NOTES {
        assert_caught(&caught(&format!("let a = 1; // {word}: two")), word);
        assert_clean(&caught(&format!("let a = \"{word}\";")));
    }
}

#[test]
fn no_comment_holds_code() {
    assert_clean(&commented_out_code(&Tree::of_repository()));
}

#[test]
fn code_in_a_comment_is_caught_and_prose_is_not() {
    let caught = |line: &str| commented_out_code(&Tree::of(&[("a/src/lib.rs", line)]));
    for code in [
        "// let x = 1;",
        "//self.peers.clear();",
        "    // if a::b(c) {",
        "// fn f() -> u8 {",
        "// #[test]",
        "// x += 1;",
    ] {
        assert_caught(&caught(code), ":1: code in a comment");
    }
    for prose in
        ["// the lease runs out (see M1); then it stops", "/// let x = 1;", "//! use a::b;", "// frames, then bytes;"]
    {
        assert_clean(&caught(prose));
    }
}
