//! How long a file may be, what it may be called, and what it may not know of.

use crate::source::Source;
use crate::tree::Tree;
use crate::{assert_caught, assert_clean};

/// Lines of code above which a file is two things; tests are exempt.
const CODE_LINES_MAX: usize = 500;

/// Lines of any sort above which even a file of tests is split.
const LINES_MAX: usize = 800;

/// Names that say nothing of what is inside.
const EMPTY_NAMES: &[&str] = &["common", "helper", "helpers", "manager", "misc", "util", "utils"];

/// Where the checkouts and homes of machines are, in halves so that this file passes its own rule.
const MACHINE_PATHS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

fn long_files(tree: &Tree) -> Vec<String> {
    let mut broken = Vec::new();
    for (path, text) in tree.sources() {
        let lines = text.lines().count();
        let code = Source::read(text).code_lines();
        let tests = path.ends_with("/tests.rs") || path.contains("/tests/");
        if lines > LINES_MAX {
            broken.push(format!("{path}: {lines} lines, more than {LINES_MAX}; split it"));
        } else if code > CODE_LINES_MAX && !tests {
            broken.push(format!("{path}: {code} lines of code, more than {CODE_LINES_MAX}; which two things is it?"));
        }
    }
    broken
}

fn empty_names(tree: &Tree) -> Vec<String> {
    let mut broken = Vec::new();
    for (path, _) in tree.sources() {
        let mut parts = path.strip_suffix(".rs").unwrap_or(path).split('/');
        if let Some(part) = parts.find(|part| EMPTY_NAMES.contains(part)) {
            broken.push(format!("{path}: `{part}` does not say what is inside; name the thing"));
        }
    }
    broken
}

fn machine_paths(tree: &Tree) -> Vec<String> {
    let mut broken = Vec::new();
    for (path, text) in tree.files() {
        for (index, line) in text.lines().enumerate() {
            for machine in MACHINE_PATHS.iter().filter(|machine| has_absolute(line, machine)) {
                broken.push(format!("{path}:{}: `{machine}` is a path of one machine", index + 1));
            }
        }
    }
    broken
}

/// Whether `line` has `folder` at the start of a path, not inside a longer one or an address.
fn has_absolute(line: &str, folder: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || "_-.}~)*".contains(c);
    line.match_indices(folder).any(|(at, _)| !line[..at].ends_with(inside))
}

#[test]
fn no_file_is_long() {
    assert_clean(&long_files(&Tree::of_repository()));
}

#[test]
fn a_long_file_is_caught_and_tests_may_be_longer() {
    let (code, prose) = ("f();\n".repeat(501), "// a\n".repeat(700));
    assert_caught(&long_files(&Tree::of(&[("a/src/b.rs", &code)])), "501 lines of code");
    assert_clean(&long_files(&Tree::of(&[("a/src/tests.rs", &code), ("a/tests/b.rs", &code), ("a/src/c.rs", &prose)])));
    assert_caught(&long_files(&Tree::of(&[("a/src/tests.rs", &code.repeat(2))])), "1002 lines");
}

#[test]
fn no_file_has_a_name_that_says_nothing() {
    assert_clean(&empty_names(&Tree::of_repository()));
}

#[test]
fn an_empty_name_is_caught() {
    assert_caught(&empty_names(&Tree::of(&[("a/src/utils.rs", "")])), "`utils`");
    assert_caught(&empty_names(&Tree::of(&[("a/tests/common/mod.rs", "")])), "`common`");
    assert_clean(&empty_names(&Tree::of(&[("a/src/commonwealth.rs", "")])));
}

#[test]
fn no_file_names_a_place_on_one_machine() {
    assert_clean(&machine_paths(&Tree::of_repository()));
}

#[test]
fn a_place_on_one_machine_is_caught() {
    let home = format!("cd \"{}ada\"", MACHINE_PATHS[2]);
    assert_caught(&machine_paths(&Tree::of(&[(".ci/run", &home)])), ".ci/run:1");
    let inside = format!("see net{}x", MACHINE_PATHS[0]);
    assert_clean(&machine_paths(&Tree::of(&[("README.md", &inside)])));
}
