//! Inside the library a file imports only its own floor and those below it (ARCHITECTURE.md, 'Floors').

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::Tree;
use crate::{assert_caught, assert_clean};

/// The floors from the ground up; of those that stand side by side none may name another.
const FLOORS: &[&[&str]] = &[
    &["face"],
    &["core"],
    &["cluster"],
    &["topic", "versioned", "reliable", "locality", "blocking"],
    &["hosts"],
    &["geo"],
    &["node"],
    &["door"],
];

/// On which floor a module stands: the longest path counts.
const MODULES: &[(&str, &str)] = &[
    ("actor", "core"),
    ("actor/error", "face"),
    ("actor/failed", "face"),
    ("actor/key", "face"),
    ("actor/retry", "face"),
    ("actor/spent", "face"),
    ("actor/version_gap", "face"),
    ("actor/why", "face"),
    ("blocking", "blocking"),
    ("blocking/settings", "face"),
    ("cluster", "cluster"),
    ("cluster/view", "core"),
    ("context", "face"),
    ("duration", "face"),
    ("flags", "door"),
    ("gateway", "door"),
    ("geo", "geo"),
    ("geo/adaptive/config", "face"),
    ("geo/adaptive/report", "face"),
    ("geo/clusters", "face"),
    ("geo/config", "face"),
    ("geo/reliable_kinds", "core"),
    ("geo/word", "face"),
    ("here", "core"),
    ("here/built_in", "face"),
    ("hosts", "hosts"),
    ("hosts/settings", "face"),
    ("intercept", "core"),
    ("locality", "locality"),
    ("locality/settings", "face"),
    ("net", "core"),
    ("node", "node"),
    ("node/builder", "door"),
    ("node/config", "face"),
    ("node/error", "face"),
    ("observe", "core"),
    ("observe/following", "cluster"),
    ("observe/look", "cluster"),
    ("observe/overview", "cluster"),
    ("observe/question", "cluster"),
    ("observe/whereabouts", "cluster"),
    ("observe/stage/cluster", "cluster"),
    ("observe/stage/seats", "cluster"),
    ("pids", "cluster"),
    ("pids/ended", "face"),
    ("pids/dead_letters", "core"),
    ("pids/key", "face"),
    ("reliable", "reliable"),
    ("reliable/settings", "face"),
    ("shard", "core"),
    ("shard/slot", "face"),
    ("state", "core"),
    ("state/error", "face"),
    ("stream", "core"),
    ("time", "cluster"),
    ("time/tick", "face"),
    ("topic", "topic"),
    ("versioned", "versioned"),
];

/// The library's sources; its root shows everything and stands on no floor.
pub(crate) const SOURCES: &str = "crates/greenroom/src/";

/// Each arrow from a file to a module that is neither on its floor nor below, and the files that have no floor.
fn upward_arrows(tree: &Tree) -> Vec<String> {
    let sources: Vec<(&str, &str)> = tree
        .sources()
        .filter_map(|(path, text)| Some((path.strip_prefix(SOURCES)?.strip_suffix(".rs")?, text)))
        .collect();
    let modules: BTreeSet<&str> = sources.iter().map(|(path, _)| path.trim_end_matches("/mod")).collect();
    let shown = sources.iter().find(|(path, _)| *path == "lib").map(|(_, text)| shown(text)).unwrap_or_default();
    let mut broken = BTreeSet::new();
    for (path, text) in sources.iter().filter(|(path, _)| *path != "lib") {
        let module = path.trim_end_matches("/mod");
        let Some((height, floor)) = level(module) else {
            broken.insert(format!("{SOURCES}{path}.rs stands on no floor; give its folder one in {}", file!()));
            continue;
        };
        for used in imports(module, without_tests(text)) {
            let used = match used.split_once('/').is_none().then(|| shown.get(used.as_str())).flatten() {
                Some(path) => path.clone(),
                None => used,
            };
            if level(&used).is_none_or(|(other, there)| other < height || there == floor) {
                continue;
            }
            let file = longest(&used, |path| modules.contains(path)).unwrap_or(&used);
            broken.insert(format!(
                "{SOURCES}{path}.rs -> {file} runs up: let the lower floor give a trait, or let the caller say it"
            ));
        }
    }
    broken.into_iter().collect()
}

/// How high a module stands, and on which floor.
pub(crate) fn level(module: &str) -> Option<(usize, &'static str)> {
    let known = longest(module, |path| MODULES.iter().any(|(module, _)| *module == path))?;
    let (_, floor) = MODULES.iter().find(|(module, _)| *module == known)?;
    let level =
        FLOORS.iter().position(|floors| floors.contains(floor)).expect("a module stands on a floor of the list");
    Some((level, floor))
}

/// The longest beginning of a path, cut between its parts, that `is_known`.
fn longest(path: &str, is_known: impl Fn(&str) -> bool) -> Option<&str> {
    let cuts = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    cuts.map(|at| &path[..at]).filter(|part| is_known(part)).last()
}

/// What the root shows of its modules: names, and where they are.
fn shown(text: &str) -> BTreeMap<String, String> {
    let names = imports("", without_tests(text)).into_iter();
    names.filter_map(|path| Some((path.rsplit_once('/')?.1.to_owned(), path))).collect()
}

pub(crate) fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text)
}

/// The paths in this crate that the source of `module` names, from the root, with `/` between their parts.
fn imports(module: &str, text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in statements(text) {
        for (at, word) in ["crate::", "super::", "self::"].iter().flat_map(|word| line.match_indices(word)) {
            let before = line[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let (mut base, mut rest) = (Vec::new(), &line[at + word.len()..]);
            if word == "self::" {
                base = module.split('/').collect();
            }
            if word == "super::" {
                base = module.split('/').collect();
                base.pop();
                while let Some(further) = rest.strip_prefix("super::") {
                    base.pop();
                    rest = further;
                }
            }
            let base: String = base.iter().map(|part| format!("{part}/")).collect();
            tree_of(&base, rest, &mut found);
        }
    }
    found
}

/// The text without comments, its lines as one, as an import may have many.
fn statements(text: &str) -> Vec<String> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code: Vec<&str> = code.map(str::trim).collect();
    code.join(" ").split(';').map(str::to_owned).collect()
}

/// Adds the paths of a tree of imports that begins at `base`.
fn tree_of<'a>(base: &str, text: &'a str, found: &mut BTreeSet<String>) -> &'a str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if let Some(mut rest) = rest.strip_prefix('{').filter(|_| name.is_empty()) {
        while !rest.is_empty() && !rest.starts_with('}') {
            rest = tree_of(base, rest.trim_start_matches([' ', ',']), found);
            // An alias, or what else stands behind a name.
            rest = &rest[rest.find([',', '}']).unwrap_or(rest.len())..];
            rest = rest.trim_start_matches([' ', ',']);
        }
        return rest.strip_prefix('}').unwrap_or(rest);
    }
    match rest.strip_prefix("::") {
        Some(rest) if !name.is_empty() => tree_of(&format!("{base}{name}/"), rest, found),
        _ => {
            found.insert(format!("{base}{name}"));
            rest
        }
    }
}

#[test]
fn no_file_of_the_library_imports_a_floor_above_it() {
    assert_clean(&upward_arrows(&Tree::of_repository()));
}

#[test]
fn an_import_of_a_floor_above_is_caught() {
    let tree = |text: &str| {
        let file = |name: &str| format!("{SOURCES}{name}.rs");
        let (key, hub, lib) = (file("actor/key"), file("topic/hub"), file("lib"));
        Tree::of(&[(&key, "struct Key;"), (&hub, text), (&lib, "pub use crate::node::{Builder, Node};")])
    };
    let caught = |text: &str, what: &str| assert_caught(&upward_arrows(&tree(text)), what);
    assert_clean(&upward_arrows(&tree("use crate::actor::key::{Key, Kind};\nuse super::queue::Queue;\n")));
    assert_clean(&upward_arrows(&tree("// crate::node::shared\n#[cfg(test)]\nmod tests { use crate::Node; }")));
    caught("use crate::{actor::key::Key, geo::driver::Geo};", "topic/hub.rs -> geo");
    caught(
        "use crate::actor::{\n    key::Key as K,\n};\nfn at(_: &crate::node::shared::Shared) {}",
        "topic/hub.rs -> node",
    );
    caught("use super::super::versioned::registry::Registry;", "topic/hub.rs -> versioned");
    caught("use crate::Node;", "topic/hub.rs -> node");
    let (observe, look) = (format!("{SOURCES}observe/mod.rs"), format!("{SOURCES}observe/look.rs"));
    let shows = Tree::of(&[(&observe, "pub(crate) use self::{heat::Heat, look::Looks};"), (&look, "")]);
    assert_caught(&upward_arrows(&shows), "observe/mod.rs -> observe/look");
}

#[test]
fn a_module_without_a_floor_is_caught() {
    let path = format!("{SOURCES}attic/box.rs");
    assert_caught(&upward_arrows(&Tree::of(&[(&path, "")])), "stands on no floor");
}
