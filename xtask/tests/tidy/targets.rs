//! A library or program whose tests are switched off in its manifest has none: they would never run.

use crate::tree::Tree;
use crate::{assert_caught, assert_clean};

/// Marks of unit tests.
const TESTS: &[&str] = &["#[test]", "#[tokio::test", "#[cfg(test)]", "#[explore", "proptest!"];

/// Beginnings of the first line of a code block that rustdoc compiles.
const COMPILED: &[&str] = &["rust", "no_run", "ignore", "should_panic", "compile_fail", "edition"];

fn unrun_tests(tree: &Tree) -> Vec<String> {
    let mut broken = Vec::new();
    for (folder, manifest) in tree.manifests() {
        let library = manifest.get("lib").and_then(toml::Value::as_table);
        let programs = manifest.get("bin").and_then(toml::Value::as_array).into_iter().flatten();
        let targets: Vec<&toml::Table> =
            library.into_iter().chain(programs.filter_map(toml::Value::as_table)).collect();
        let is_off =
            |key: &str| targets.iter().any(|target| target.get(key).and_then(toml::Value::as_bool) == Some(false));
        let (without_tests, without_examples) = (is_off("test"), is_off("doctest"));
        let sources = format!("{folder}src/");
        for (path, text) in tree.sources().filter(|(path, _)| path.starts_with(&sources)) {
            if without_tests && TESTS.iter().any(|mark| text.contains(mark)) {
                broken.push(format!("{path}: these tests never run; remove `test = false` from {folder}Cargo.toml"));
            }
            if without_examples && has_example(text) {
                broken
                    .push(format!("{path}: this example never runs; remove `doctest = false` from {folder}Cargo.toml"));
            }
        }
    }
    broken
}

/// True if the documentation in `text` has a code block that rustdoc would compile.
fn has_example(text: &str) -> bool {
    let mut is_inside = false;
    let fences = text.lines().filter_map(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
        line.trim().strip_prefix("```")
    });
    fences.into_iter().any(|language| {
        is_inside = !is_inside;
        is_inside && (language.is_empty() || COMPILED.iter().any(|compiled| language.starts_with(compiled)))
    })
}

#[test]
fn no_test_stands_where_none_is_run() {
    assert_clean(&unrun_tests(&Tree::of_repository()));
}

#[test]
fn a_test_that_would_never_run_is_caught() {
    let off = "[package]\nname = \"a\"\n[lib]\ntest = false\ndoctest = false\n";
    let test = "#[cfg(test)]\nmod tests {}\n";
    assert_caught(&unrun_tests(&Tree::of(&[("a/Cargo.toml", off), ("a/src/b.rs", test)])), "a/src/b.rs");
    assert_clean(&unrun_tests(&Tree::of(&[("a/Cargo.toml", "[package]\nname = \"a\"\n"), ("a/src/b.rs", test)])));
    assert_clean(&unrun_tests(&Tree::of(&[("a/Cargo.toml", off), ("a/tests/b.rs", test), ("ab/src/c.rs", test)])));
    let program = "[package]\nname = \"a\"\n[[bin]]\nname = \"a\"\ntest = false\n";
    assert_caught(
        &unrun_tests(&Tree::of(&[("a/Cargo.toml", program), ("a/src/main.rs", "#[test]\nfn b() {}\n")])),
        "main.rs",
    );
    let example = "/// ```\n/// a();\n/// ```\nfn b() {}\n";
    assert_caught(&unrun_tests(&Tree::of(&[("a/Cargo.toml", off), ("a/src/b.rs", example)])), "doctest");
    assert_clean(&unrun_tests(&Tree::of(&[
        ("a/Cargo.toml", off),
        ("a/src/b.rs", &example.replacen("```", "```text", 1)),
    ])));
}
