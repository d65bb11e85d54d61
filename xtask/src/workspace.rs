//! The packages of this workspace, as cargo describes them: their folders, and which of them each uses.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::step::{cargo, root};

/// A package of the workspace.
#[derive(Debug, Default)]
pub(crate) struct Package {
    /// Its folder below the root, with `/` at its end.
    pub(crate) folder: String,
    /// Packages of the workspace that its library and programs use.
    pub(crate) uses: BTreeSet<String>,
    /// Packages of the workspace that only its tests use.
    pub(crate) tests_use: BTreeSet<String>,
}

/// Packages of the workspace by their names.
pub(crate) type Packages = BTreeMap<String, Package>;

/// Asks cargo for the packages.
///
/// # Errors
/// A sentence, if cargo cannot be asked.
pub(crate) fn packages() -> Result<Packages, String> {
    let mut command = cargo();
    command.args(["metadata", "--no-deps", "--locked", "--format-version", "1"]).current_dir(root());
    let output = command.output().map_err(|error| format!("cargo could not start: {error}"))?;
    let broken = || format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    let described: Value = serde_json::from_slice(&output.stdout).map_err(|_| broken())?;
    described["packages"].as_array().and_then(|all| all.iter().map(package).collect()).ok_or_else(broken)
}

fn package(described: &Value) -> Option<(String, Package)> {
    let manifest = described["manifest_path"].as_str()?;
    let folder = manifest.strip_suffix("Cargo.toml")?.strip_prefix(root().to_str()?)?.trim_start_matches('/');
    let mut package = Package { folder: folder.to_owned(), ..Package::default() };
    // Those of other workspaces have no path.
    for dependency in described["dependencies"].as_array()?.iter().filter(|dependency| dependency["path"].is_string()) {
        let uses = if dependency["kind"] == "dev" { &mut package.tests_use } else { &mut package.uses };
        uses.insert(dependency["name"].as_str()?.to_owned());
    }
    Some((described["name"].as_str()?.to_owned(), package))
}

/// `name` and all packages that its tests are built from.
pub(crate) fn tested_with(packages: &Packages, name: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::from([name.to_owned()]);
    let mut left: Vec<&str> = packages.get(name).into_iter().flat_map(Package::all_used).collect();
    while let Some(used) = left.pop() {
        if found.insert(used.to_owned()) {
            left.extend(packages.get(used).into_iter().flat_map(|package| package.uses.iter().map(String::as_str)));
        }
    }
    found
}

impl Package {
    /// All packages that it uses, its tests included.
    pub(crate) fn all_used(&self) -> impl Iterator<Item = &str> {
        self.uses.iter().chain(&self.tests_use).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tests_are_built_from_goes_down_and_leaves_out_the_tests_of_others() {
        let packages = packages().expect("cargo describes them");
        assert_eq!(packages["greenroom-wire"].folder, "crates/greenroom-wire/");
        assert_eq!(tested_with(&packages, "greenroom-protocols"), BTreeSet::from(["greenroom-protocols".to_owned()]));
        let explorer = tested_with(&packages, "greenroom-explore");
        assert!(["greenroom", "greenroom-macros", "greenroom-test"].iter().all(|name| explorer.contains(*name)));
        assert!(!explorer.contains("greenroom-cli"), "{explorer:?}");
    }
}
