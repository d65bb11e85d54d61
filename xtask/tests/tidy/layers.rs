//! A crate uses only crates below it (ARCHITECTURE.md, 'Layers').

use std::collections::BTreeSet;

use crate::tree::Tree;
use crate::{assert_caught, assert_clean};

/// Each package and the packages of this workspace that it may use. Tests (dev-dependencies) may look anywhere.
const LAYERS: &[(&str, &[&str])] = &[
    ("greenroom-protocols", &[]),
    ("greenroom-macros", &[]),
    ("greenroom-console", &[]),
    ("greenroom-describe", &[]),
    ("greenroom-wire", &["greenroom-protocols"]),
    ("greenroom-world", &["greenroom-protocols"]),
    ("greenroom-store", &["greenroom-protocols"]),
    ("greenroom-security", &["greenroom-store", "greenroom-world"]),
    ("greenroom-reliable", &["greenroom-protocols", "greenroom-store", "greenroom-wire"]),
    ("greenroom-store-conformance", &["greenroom-store"]),
    ("greenroom-store-etcd", &["greenroom-store"]),
    ("greenroom-store-kafka", &["greenroom-store"]),
    ("greenroom-store-kube", &["greenroom-store"]),
    ("greenroom-store-object", &["greenroom-store"]),
    ("greenroom-store-postgres", &["greenroom-store"]),
    ("greenroom-store-redis", &["greenroom-store"]),
    ("greenroom-store-sqlite", &["greenroom-store"]),
    (
        "greenroom-stores",
        &[
            "greenroom-store",
            "greenroom-store-etcd",
            "greenroom-store-kafka",
            "greenroom-store-kube",
            "greenroom-store-object",
            "greenroom-store-postgres",
            "greenroom-store-redis",
            "greenroom-store-sqlite",
        ],
    ),
    ("greenroom-engines", &[]),
    ("greenroom-sim", &["greenroom-protocols", "greenroom-store", "greenroom-wire", "greenroom-world"]),
    ("greenroom-host", &["greenroom-describe", "greenroom-protocols", "greenroom-wire", "greenroom-world"]),
    (
        "greenroom",
        &[
            "greenroom-console",
            "greenroom-describe",
            "greenroom-macros",
            "greenroom-protocols",
            "greenroom-reliable",
            "greenroom-security",
            "greenroom-store",
            "greenroom-stores",
            "greenroom-wire",
            "greenroom-world",
        ],
    ),
    ("greenroom-test", &["greenroom", "greenroom-sim", "greenroom-store", "greenroom-wire"]),
    ("greenroom-explore", &["greenroom", "greenroom-sim", "greenroom-store", "greenroom-test", "greenroom-world"]),
    ("greenroom-otel", &["greenroom"]),
    ("greenroom-grpc", &["greenroom"]),
    (
        "greenroom-workloads",
        &[
            "greenroom",
            "greenroom-describe",
            "greenroom-host",
            "greenroom-relay",
            "greenroom-sim",
            "greenroom-store",
            "greenroom-stores",
            "greenroom-world",
        ],
    ),
    (
        "greenroom-cli",
        &[
            "greenroom",
            "greenroom-copy",
            "greenroom-describe",
            "greenroom-grpc",
            "greenroom-otel",
            "greenroom-protocols",
            "greenroom-relay",
            "greenroom-reliable",
            "greenroom-security",
            "greenroom-store",
            "greenroom-stores",
            "greenroom-workloads",
        ],
    ),
    ("greenroom-copy", &[]),
    ("greenroom-upgrade", &["greenroom"]),
    ("greenroom-relay", &[]),
    ("greenroom-chaos", &["greenroom-engines", "greenroom-relay", "greenroom-sim"]),
    ("greenroom-conformance", &[]),
    ("greenroom-guide", &[]),
    ("greenroom-mistakes", &[]),
    ("xtask", &[]),
    ("peers", &["greenroom"]),
    ("peers-shuttle", &["greenroom", "greenroom-explore"]),
];

/// Folders of packages that stand on all others, and that no other uses.
const ABOVE_ALL: &[&str] = &["examples/", "fuzz/", "tutorial/"];

/// Crates that nobody maintains any more, or that invite what we do not do.
const UNWANTED: &[&str] = &["bincode", "fxhash", "paste"];

/// Two providers of cryptography in one program make rustls panic, as it cannot choose; ours is ring.
const SECOND_CRYPTOGRAPHY: &str = "aws-lc-sys";

fn upward_dependencies(tree: &Tree) -> Vec<String> {
    let mut broken = Vec::new();
    let ours = |folder: &str| !ABOVE_ALL.iter().any(|above| folder.starts_with(above));
    for (folder, manifest) in tree.manifests().filter(|(folder, _)| ours(folder)) {
        let name = manifest["package"]["name"].as_str().expect("a package has a name");
        let Some((_, below)) = LAYERS.iter().find(|(layer, _)| *layer == name) else {
            broken.push(format!("{folder}: `{name}` has no place in the layers; give it one in {}", file!()));
            continue;
        };
        for used in dependencies(&manifest) {
            let ours = LAYERS.iter().any(|(layer, _)| *layer == used);
            if ours && !below.contains(&used.as_str()) {
                broken.push(format!("{folder}Cargo.toml: `{name}` may not use `{used}`, which is not below it"));
            }
        }
    }
    broken
}

/// What the package is built with: everything but dev-dependencies, on any platform.
pub(crate) fn dependencies(manifest: &toml::Table) -> BTreeSet<String> {
    let platforms = manifest.get("target").and_then(toml::Value::as_table).into_iter().flatten();
    let tables = platforms.filter_map(|(_, platform)| platform.as_table()).chain([manifest]);
    let mut found = BTreeSet::new();
    for table in tables {
        for section in ["dependencies", "build-dependencies"] {
            for (alias, wanted) in table.get(section).and_then(toml::Value::as_table).into_iter().flatten() {
                let package = wanted.get("package").and_then(toml::Value::as_str);
                found.insert(package.unwrap_or(alias).to_owned());
            }
        }
    }
    found
}

fn unwanted_dependencies(tree: &Tree) -> Vec<String> {
    let lock: toml::Table = tree.text("Cargo.lock").expect("Cargo.lock is tracked").parse().expect("it is TOML");
    let packages = lock["package"].as_array().expect("it lists packages");
    let mut broken = Vec::new();
    if packages.iter().any(|package| package["name"].as_str() == Some(SECOND_CRYPTOGRAPHY)) {
        broken
            .push(format!("`{SECOND_CRYPTOGRAPHY}` is in Cargo.lock; `cargo tree -i {SECOND_CRYPTOGRAPHY}` says why"));
    }
    for package in packages.iter().filter(|package| package.get("source").is_none()) {
        let used = package.get("dependencies").and_then(toml::Value::as_array).into_iter().flatten();
        for used in used.filter_map(toml::Value::as_str) {
            // The lock file writes `name`, or `name version` where two versions are in use.
            let used = used.split(' ').next().unwrap_or(used);
            if UNWANTED.contains(&used) {
                broken.push(format!("{} uses `{used}`, which is not maintained", package["name"]));
            }
        }
    }
    broken
}

#[test]
fn no_crate_uses_a_crate_that_is_not_below_it() {
    assert_clean(&upward_dependencies(&Tree::of_repository()));
}

#[test]
fn a_dependency_upwards_is_caught() {
    let world = |text: &str| Tree::of(&[("crates/greenroom-world/Cargo.toml", text)]);
    let up = "[package]\nname = \"greenroom-world\"\n[dependencies]\ngreenroom.workspace = true\n";
    assert_caught(&upward_dependencies(&world(up)), "may not use `greenroom`");
    assert_caught(&upward_dependencies(&world(&up.replace("[dep", "[target.'cfg(unix)'.dep"))), "may not use");
    assert_clean(&upward_dependencies(&world(&up.replace("[dep", "[dev-dep"))));
    let renamed = up.replace("greenroom.workspace = true", "g = { package = \"greenroom\", path = \"..\" }");
    assert_caught(&upward_dependencies(&world(&renamed)), "may not use `greenroom`");
}

#[test]
fn a_crate_without_a_place_in_the_layers_is_caught() {
    let tree = Tree::of(&[("crates/greenroom-attic/Cargo.toml", "[package]\nname = \"greenroom-attic\"\n")]);
    assert_caught(&upward_dependencies(&tree), "no place in the layers");
}

#[test]
fn no_crate_of_ours_uses_an_unmaintained_crate() {
    assert_clean(&unwanted_dependencies(&Tree::of_repository()));
}

#[test]
fn an_unmaintained_crate_is_caught_only_where_we_chose_it() {
    let lock = "[[package]]\nname = \"greenroom\"\ndependencies = [\"paste 1.0.15\"]\n\
        [[package]]\nname = \"theirs\"\nsource = \"registry\"\ndependencies = [\"bincode\"]\n";
    assert_caught(&unwanted_dependencies(&Tree::of(&[("Cargo.lock", lock)])), "`paste`");
    let lock = "[[package]]\nname = \"aws-lc-sys\"\nsource = \"registry\"\n";
    assert_caught(&unwanted_dependencies(&Tree::of(&[("Cargo.lock", lock)])), "`aws-lc-sys`");
}
