//! Every source file is part of a crate: a file that no `mod` names is dead.

use std::collections::BTreeSet;

use crate::source::Source;
use crate::tree::Tree;
use crate::{assert_caught, assert_clean};

fn dead_files(tree: &Tree) -> Vec<String> {
    let mut reached = BTreeSet::new();
    let mut sources = BTreeSet::new();
    for (folder, manifest) in tree.manifests() {
        let src = format!("{folder}src/");
        sources.extend(tree.sources().map(|(path, _)| path).filter(|path| path.starts_with(&src)));
        for root in roots(tree, folder, &manifest) {
            let modules = parent(&root).to_owned();
            reach(tree, &root, &modules, &mut reached);
        }
    }
    let dead = sources.into_iter().filter(|path| !reached.contains(*path));
    dead.map(|path| format!("{path}: no `mod` declares it, so it is never compiled")).collect()
}

/// The files from which cargo compiles the package in `folder`.
fn roots(tree: &Tree, folder: &str, manifest: &toml::Table) -> Vec<String> {
    let bin = format!("{folder}src/bin/");
    let is_bin = |path: &str| match path.strip_prefix(&bin) {
        Some(rest) => !rest.contains('/') || (rest.ends_with("/main.rs") && rest.matches('/').count() == 1),
        None => false,
    };
    let found = tree.sources().map(|(path, _)| path.to_owned()).filter(|path| is_bin(path));
    let usual = ["src/lib.rs", "src/main.rs"].map(|name| format!("{folder}{name}"));
    let named = manifest.values().flat_map(|value| match value {
        toml::Value::Array(targets) => targets.iter().collect(),
        other => vec![other],
    });
    let named = named.filter_map(|target| Some(format!("{folder}{}", target.get("path")?.as_str()?)));
    found.chain(usual).chain(named).filter(|path| tree.text(path).is_some()).collect()
}

/// Adds `path` and every file that it declares; `modules` is the folder that holds its modules.
fn reach(tree: &Tree, path: &str, modules: &str, reached: &mut BTreeSet<String>) {
    let Some(text) = tree.text(path) else { return };
    if !reached.insert(path.to_owned()) {
        return;
    }
    let mut placed = None;
    for ((_, line), raw) in Source::read(text).lines().zip(text.lines()) {
        let code = line.code.trim();
        if code.starts_with("#[path") {
            placed = raw.split('"').nth(1).map(|place| format!("{}{place}", parent(path)));
        } else if let Some(name) = declared_module(code) {
            let inside = format!("{modules}{name}/");
            match placed.take() {
                Some(place) => reach(tree, &place, parent(&place), reached),
                None => {
                    reach(tree, &format!("{modules}{name}.rs"), &inside, reached);
                    reach(tree, &format!("{inside}mod.rs"), &inside, reached);
                }
            }
        }
    }
}

/// The module that this line takes from another file.
pub(crate) fn declared_module(code: &str) -> Option<&str> {
    let (before, name) = code.strip_suffix(';')?.rsplit_once(' ').unwrap_or(("", ""));
    (before == "mod" || before.ends_with(" mod")).then_some(name)
}

/// The folder of `path`, with its closing slash.
fn parent(path: &str) -> &str {
    path.rfind('/').map_or("", |slash| &path[..=slash])
}

#[test]
fn every_source_file_is_compiled() {
    assert_clean(&dead_files(&Tree::of_repository()));
}

#[test]
fn a_file_that_no_module_declares_is_caught() {
    let manifest = ("a/Cargo.toml", "[package]\nname = \"a\"\n");
    let lib = ("a/src/lib.rs", "pub mod b;\n// mod dead;\n#[path = \"odd.rs\"]\nmod even;\n");
    let alive =
        [("a/src/b.rs", "#[cfg(test)]\nmod c;"), ("a/src/b/c.rs", ""), ("a/src/odd.rs", ""), ("a/src/bin/d.rs", "")];
    let files = [manifest, lib, alive[0], alive[1], alive[2], alive[3]];
    assert_clean(&dead_files(&Tree::of(&files)));
    assert_caught(&dead_files(&Tree::of(&[&files[..], &[("a/src/dead.rs", "")]].concat())), "a/src/dead.rs");
}
