//! `greenroom-protocols` is pure: no runtime, clock, socket, thread or chance, and no order taken from a hash map.

use std::collections::BTreeSet;

use crate::layers::dependencies;
use crate::source::{Source, has_word};
use crate::tree::Tree;
use crate::{assert_caught, assert_clean};

/// The crates that the protocols may be built with: data, errors, nothing that acts.
const ALLOWED: &[&str] = &["bytes", "serde", "serde_bytes", "smallvec", "thiserror"];

/// Paths and names of what acts.
const IMPURE: &[&str] = &[
    "Instant",
    "SystemTime",
    "RandomState",
    "async",
    "rand",
    "std::env",
    "std::fs",
    "std::io",
    "std::net",
    "std::process",
    "std::thread",
    "thread_local",
    "tokio",
];

/// Methods that show a hash map's order.
const ORDERED: &[&str] = &[
    "drain",
    "extract_if",
    "into_iter",
    "into_keys",
    "into_values",
    "iter",
    "iter_mut",
    "keys",
    "retain",
    "values",
    "values_mut",
];

const HASHED: &[&str] = &["HashMap", "HashSet"];

fn impure_dependencies(tree: &Tree) -> Vec<String> {
    let manifests =
        tree.manifests().filter(|(_, manifest)| manifest["package"]["name"].as_str() == Some("greenroom-protocols"));
    let mut broken = Vec::new();
    for (folder, manifest) in manifests {
        let used = dependencies(&manifest).into_iter().filter(|used| !ALLOWED.contains(&used.as_str()));
        broken.extend(used.map(|used| format!("{folder}Cargo.toml: the protocols may not use `{used}`")));
    }
    broken
}

fn impure_code(tree: &Tree) -> Vec<String> {
    let mut broken = Vec::new();
    for (path, source) in protocol_sources(tree) {
        for (number, line) in source.lines_without_tests() {
            for word in IMPURE.iter().filter(|word| has_word(&line.code, word)) {
                broken.push(format!("{path}:{number}: the protocols may not name `{word}`"));
            }
        }
    }
    broken
}

fn hash_map_iterations(tree: &Tree) -> Vec<String> {
    let mut broken = Vec::new();
    for (path, source) in protocol_sources(tree) {
        let chains = chains(&source);
        let hashed: BTreeSet<&str> = chains.iter().filter_map(|(_, code)| hashed_name(code)).collect();
        for (number, code) in &chains {
            for name in hashed.iter().filter(|name| iterates(code, name)) {
                broken.push(format!("{path}:{number}: `{name}` is hashed, so its order is chance; use a BTreeMap"));
            }
        }
    }
    broken
}

/// The source's lines of code, each with the `.method()` lines that continue it.
fn chains(source: &Source) -> Vec<(usize, String)> {
    let mut chains: Vec<(usize, String)> = Vec::new();
    for (number, line) in source.lines_without_tests() {
        match chains.last_mut() {
            Some((_, chain)) if line.code.trim_start().starts_with('.') => chain.push_str(line.code.trim_start()),
            _ => chains.push((number, line.code.clone())),
        }
    }
    chains
}

/// The name that this code declares with a hashed type, as a field, an argument or a variable.
fn hashed_name(code: &str) -> Option<&str> {
    let at = HASHED.iter().filter_map(|hashed| code.find(hashed)).min()?;
    let head = &code[..at];
    let head = head.strip_suffix("collections::").unwrap_or(head);
    let head = head.strip_suffix("std::").unwrap_or(head);
    let (declared, wrapper) = head.split_at(head.rfind([':', '='])?);
    let name = declared.trim_end().rsplit(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    (!name.is_empty() && !wrapper.contains(['>', '(', ')', ',', ';', '{'])).then_some(name)
}

fn iterates(code: &str, name: &str) -> bool {
    let by_method = ORDERED.iter().any(|method| has_word(code, &format!("{name}.{method}")));
    let by_loop = code.split_once(" in ").is_some_and(|(head, tail)| {
        let walked = tail.trim_start_matches(['&', '*']).trim_start_matches("mut ").trim_start_matches("self.");
        has_word(head, "for") && walked.split([' ', '{']).next() == Some(name)
    });
    by_method || by_loop
}

fn protocol_sources(tree: &Tree) -> impl Iterator<Item = (&str, Source)> {
    let ours = tree.sources().filter(|(path, _)| path.starts_with("crates/greenroom-protocols/src/"));
    ours.filter(|(path, _)| !path.ends_with("/tests.rs") && !path.contains("/tests/"))
        .map(|(path, text)| (path, Source::read(text)))
}

fn snippet(text: &str) -> Tree {
    Tree::of(&[("crates/greenroom-protocols/src/lease.rs", text)])
}

#[test]
fn the_protocols_are_built_with_nothing_that_acts() {
    assert_clean(&impure_dependencies(&Tree::of_repository()));
}

#[test]
fn a_runtime_under_the_protocols_is_caught() {
    let text = "[package]\nname = \"greenroom-protocols\"\n[dependencies]\nserde = \"1\"\ntokio = \"1\"\n";
    assert_caught(&impure_dependencies(&Tree::of(&[("crates/greenroom-protocols/Cargo.toml", text)])), "`tokio`");
}

#[test]
fn the_protocols_name_no_clock_no_thread_and_no_runtime() {
    assert_clean(&impure_code(&Tree::of_repository()));
}

#[test]
fn a_clock_in_the_protocols_is_caught_and_a_word_about_it_is_not() {
    assert_caught(&impure_code(&snippet("fn f() { let now = std::time::Instant::now(); }")), ":1: the protocols");
    assert_caught(&impure_code(&snippet("\nuse std::thread;")), "`std::thread`");
    assert_clean(&impure_code(&snippet(
        "// tokio drives this\nconst A: &str = \"tokio\";\n#[cfg(test)]\nmod tests {\n    use rand::Rng;\n}",
    )));
}

#[test]
fn the_protocols_iterate_no_hash_map() {
    assert_clean(&hash_map_iterations(&Tree::of_repository()));
}

#[test]
fn an_iterated_hash_map_is_caught_and_a_looked_up_one_is_not() {
    let with = |line: &str| snippet(&format!("struct S {{ peers: HashMap<u8, u8>, rows: BTreeMap<u8, u8> }}\n{line}"));
    assert_caught(&hash_map_iterations(&with("for p in &self.peers {}")), ":2: `peers`");
    assert_caught(&hash_map_iterations(&with("let a = self.peers.values().sum();")), ":2: `peers`");
    assert_caught(&hash_map_iterations(&with("self.peers\n    .retain(|_, _| true);")), ":2: `peers`");
    assert_caught(
        &hash_map_iterations(&snippet("let mut seen = std::collections::HashSet::new();\nseen.iter();")),
        "seen",
    );
    assert_clean(&hash_map_iterations(&with("for r in &self.rows { self.peers.get(r); }")));
    assert_clean(&hash_map_iterations(&snippet("use std::collections::HashMap;")));
}
