//! What the page of troubles says that the program says, the program says.

use crate::tree::Tree;
use crate::{assert_caught, assert_clean};

/// The page whose blocks of `text` are messages.
const PAGE: &str = "docs/guide/troubleshooting.md";

/// What stands for what differs from time to time.
const DIFFERS: char = '…';

fn unsaid(tree: &Tree) -> Vec<String> {
    let Some(page) = tree.text(PAGE) else { return vec![format!("{PAGE} is gone")] };
    let sources: Vec<String> =
        tree.sources().filter(|(path, _)| path.contains("/src/")).map(|(_, text)| joined(text)).collect();
    let unsaid = messages(page).filter(|(_, message)| !sources.iter().any(|source| says(source, message)));
    unsaid.map(|(line, message)| format!("{PAGE}:{line}: no program says `{message}`")).collect()
}

/// The messages, with the numbers of their lines.
fn messages(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    page.lines().zip(1..).filter_map(move |(line, number)| {
        let fence = line.starts_with("```");
        if fence {
            inside = line == "```text";
        }
        (inside && !fence).then_some((number, line))
    })
}

/// Source whose strings go over lines as the compiler reads them.
fn joined(source: &str) -> String {
    let mut pieces = source.split("\\\n");
    let mut joined = pieces.next().unwrap_or_default().to_owned();
    pieces.for_each(|piece| joined.push_str(piece.trim_start()));
    joined.replace("\\\"", "\"")
}

/// Whether all parts of the message between what differs are in one source.
fn says(source: &str, message: &str) -> bool {
    message.split(DIFFERS).map(str::trim).filter(|part| part.len() > 1).all(|part| source.contains(part))
}

#[test]
fn the_messages_that_the_page_of_troubles_shows_are_those_of_the_program() {
    let tree = Tree::of_repository();
    assert!(messages(tree.text(PAGE).unwrap_or_default()).count() > 20, "the page has hardly a message");
    assert_clean(&unsaid(&tree));
}

#[test]
fn a_message_that_nobody_says_is_caught() {
    let source = ("a/src/b.rs", "f(\"node {name} is \\\n    \\\"full\\\"; retry\")");
    let page = |said: &str| format!("text\n```text\n{said}\n```\nmore\n");
    assert_clean(&unsaid(&Tree::of(&[source, (PAGE, &page("node … is \"full\"; retry"))])));
    assert_caught(
        &unsaid(&Tree::of(&[source, (PAGE, &page("node … is empty"))])),
        ":3: no program says `node … is empty`",
    );
}
