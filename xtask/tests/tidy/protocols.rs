//! `greenroom-protocols` is pure: no runtime, clock, socket, thread or chance, and no order taken from a hash map.

use std::collections::BTreeSet;

use crate::layers::dependencies;
use crate::reach::declared_module;
use crate::source::{Source, has_word};
use crate::tree::Tree;
use crate::{assert_caught, assert_clean};

/// The crates that the protocols may be built with: data, errors, nothing that acts.
const ALLOWED: &[&str] = &["bytes", "foldhash", "serde", "serde_bytes", "smallvec", "thiserror"];

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

/// The protocols' source files, without those that are compiled for tests alone.
fn protocol_sources(tree: &Tree) -> impl Iterator<Item = (&str, Source)> {
    let ours = tree.sources().filter(|(path, _)| path.starts_with("crates/greenroom-protocols/src/"));
    let ours: Vec<_> = ours.map(|(path, text)| (path, Source::read(text))).collect();
    let tests: Vec<String> = ours.iter().flat_map(|(path, source)| test_modules(path, source)).collect();
    let for_tests = move |path: &str| {
        let module = path.strip_suffix(".rs").unwrap_or(path);
        tests.iter().any(|test| module == test || module.strip_prefix(test).is_some_and(|rest| rest.starts_with('/')))
    };
    ours.into_iter().filter(move |(path, _)| !for_tests(path))
}

/// The modules that the source at `path` declares under `#[cfg(test)]`, as paths without `.rs`.
fn test_modules(path: &str, source: &Source) -> Vec<String> {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let folder = match file {
        "lib.rs" | "main.rs" | "mod.rs" => folder,
        _ => path.strip_suffix(".rs").unwrap_or(path),
    };
    let code: Vec<&str> = source.lines().map(|(_, line)| line.code.trim()).collect();
    let declared = code.windows(2).filter(|pair| pair[0] == "#[cfg(test)]");
    declared.filter_map(|pair| Some(format!("{folder}/{}", declared_module(pair[1])?))).collect()
}

/// A tree of one protocol whose source is `text`.
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
fn what_is_compiled_for_tests_alone_may_name_a_clock() {
    let folder = "crates/greenroom-protocols/src";
    let lease = (&*format!("{folder}/lease.rs"), "#[cfg(test)]\nmod model;\nmod model_free;");
    let clock =
        |name: &str| impure_code(&Tree::of(&[lease, (&format!("{folder}/lease/{name}.rs"), "use std::thread;")]));
    assert_clean(&clock("model"));
    assert_clean(&clock("model/bounds"));
    assert_caught(&clock("model_free"), "`std::thread`");
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
