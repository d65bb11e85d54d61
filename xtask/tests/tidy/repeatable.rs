//! Test programs that are skipped on sources on which they have passed read nothing else, and ask nobody.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::Tree;
use crate::{assert_caught, assert_clean};

#[path = "../../src/repeatable.rs"]
mod list;

use list::REPEATABLE;

/// Words of programs that may say something else tomorrow, and the reason.
const FORBIDDEN: &[(&str, &str)] = &[
    ("greenroom_engines", "asks an engine"),
    ("CARGO_BIN_EXE", "starts a process"),
    ("Command::new", "starts a process"),
    ("TcpListener", "asks the network"),
    ("TcpStream", "asks the network"),
    ("proptest!", "takes other cases each time"),
    ("CARGO_MANIFEST_DIR", "reads files"),
];

/// Ways to take another file into a source.
const INCLUDES: &[&str] = &["include_str!(\"", "include_bytes!(\"", "include!(\"", "#[path = \""];

fn unrepeatable(tree: &Tree) -> Vec<String> {
    let mut broken = Vec::new();
    let manifests: Manifests = tree.manifests().collect();
    for (package, target) in REPEATABLE {
        let tests = format!("crates/{package}/tests/{target}");
        let is_its_own = |path: &str| path == format!("{tests}.rs") || path.starts_with(&format!("{tests}/"));
        let mut own = tree.sources().filter(|(path, _)| is_its_own(path)).peekable();
        if own.peek().is_none() {
            broken.push(format!("xtask/src/repeatable.rs: there is no test program {package} {target}"));
        }
        for (path, text) in own {
            for (word, why) in FORBIDDEN.iter().filter(|(word, _)| text.contains(word)) {
                broken.push(format!("{path}: `{word}` {why}; take {target} out of xtask/src/repeatable.rs"));
            }
        }
        let folders = built_from(&manifests, package);
        let is_known = |path: &str| folders.iter().any(|folder| path.starts_with(folder));
        let read = tree.sources().filter(|(path, _)| is_its_own(path) || is_known(path) && path.contains("/src/"));
        for (path, text) in read.filter(|(path, _)| !path.ends_with("/tests.rs")) {
            // Unit tests of a package are no part of the tests of another one.
            let text = if is_its_own(path) { text } else { text.split("#[cfg(test)]\nmod ").next().unwrap_or(text) };
            for included in includes(path, text).filter(|included| !is_known(included)) {
                broken.push(format!("{path}: {included} is in no package that {package} {target} is built from"));
            }
        }
    }
    broken
}

/// Manifests by the folders of their packages.
type Manifests<'t> = BTreeMap<&'t str, toml::Table>;

/// The folders of a package and of all that its tests use.
fn built_from(manifests: &Manifests, package: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut left = vec![(package.to_owned(), true)];
    while let Some((name, with_tests)) = left.pop() {
        let folder = format!("crates/{name}/");
        let Some(manifest) = manifests.get(folder.as_str()) else { continue };
        if !found.insert(folder) {
            continue;
        }
        let tables = ["dependencies", "build-dependencies", "dev-dependencies"];
        for table in &tables[..if with_tests { 3 } else { 2 }] {
            let used = manifest.get(*table).and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::keys);
            left.extend(used.map(|name| (name.clone(), false)));
        }
    }
    found
}

/// The files that the source at `path` takes in.
fn includes<'t>(path: &'t str, text: &'t str) -> impl Iterator<Item = String> + 't {
    let folder: Vec<&str> = path.split('/').collect();
    let starts = INCLUDES.iter().flat_map(|way| text.match_indices(way).map(|(at, way)| &text[at + way.len()..]));
    starts.filter_map(|rest| rest.split('"').next()).map(move |relative| {
        let mut parts = folder[..folder.len() - 1].to_vec();
        for part in relative.split('/') {
            match part {
                ".." => _ = parts.pop(),
                "." => {}
                part => parts.push(part),
            }
        }
        parts.join("/")
    })
}

#[test]
fn repeatable_programs_read_and_ask_nothing_else() {
    assert_clean(&unrepeatable(&Tree::of_repository()));
}

#[test]
fn a_program_that_reads_or_asks_something_else_is_caught() {
    let manifest = |name: &str, uses: &str| format!("[package]\nname = \"{name}\"\n[dev-dependencies]\n{uses}\n");
    let packages: BTreeSet<&str> = REPEATABLE.iter().map(|(package, _)| *package).collect();
    let mut files: Vec<(String, String)> = REPEATABLE
        .iter()
        .map(|(package, target)| (format!("crates/{package}/tests/{target}/main.rs"), String::new()))
        .chain(packages.iter().map(|name| (format!("crates/{name}/Cargo.toml"), manifest(name, "used = \"1\""))))
        .collect();
    files.push(("crates/used/Cargo.toml".to_owned(), manifest("used", "")));
    let judged = |more: &[(&str, &str)]| {
        let all: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).chain(more.iter().copied()).collect();
        unrepeatable(&Tree::of(&all))
    };
    assert_clean(&judged(&[]));
    let models = "crates/greenroom-protocols/tests/models/";
    let (one, two) = (format!("{models}one.rs"), format!("{models}two.rs"));
    assert_clean(&judged(&[(&one, "include_str!(\"../../../used/words.txt\")")]));
    assert_caught(&judged(&[(&one, "include_str!(\"../../../../docs/words.txt\")")]), "docs/words.txt");
    assert_caught(&judged(&[(&two, "fn start() { Command::new(\"ls\"); }")]), "starts a process");
}
