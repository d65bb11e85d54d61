//! `cargo xtask test --quick`: what a change must pass while it is being made.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use crate::step::{cargo, root, run as step};
use crate::test::{EVERYTHING, lints, run_programs};

/// Checks the packages that differ from `revision` in the working tree, and those that stand on them.
pub(crate) fn run(revision: &str) -> Result<(), String> {
    step("format", cargo().args(["fmt", "--all", "--check"]))?;
    lints()?;
    let packages = packages()?;
    let changed = changed(&packages, revision)?;
    let shown = |names: &BTreeSet<String>| match names.len() {
        0 => "none".to_owned(),
        _ => names.iter().map(String::as_str).collect::<Vec<_>>().join(", "),
    };
    println!("==> packages that differ from {revision}: {}", shown(&changed));
    let affected = standing_on(&packages, changed);
    println!("==> packages whose tests are run: {}", shown(&affected));
    println!("==> SKIPPED for their time: {}; doc tests; all but {SEEDS} seeds", LONG.join(", "));
    let mut tests = cargo();
    tests.args(["test", "--no-fail-fast", "--lib", "--bins", "--tests"]).args(EVERYTHING).env("GREENROOM_SEEDS", SEEDS);
    run_programs(&mut tests, |program| {
        let always = ALWAYS.contains(&program.name());
        always || affected.contains(program.package()) && !LONG.contains(&program.name())
    })
}

/// The packages of the workspace: their names, their folders, and which others each of them uses.
fn packages() -> Result<BTreeMap<String, (String, BTreeSet<String>)>, String> {
    let folders = fs::read_dir(root().join("crates")).map_err(|error| format!("cannot read crates: {error}"))?;
    let mut found = BTreeMap::new();
    for folder in folders.flatten().map(|entry| entry.path()).chain([root().join("xtask")]) {
        let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) else { continue };
        let folder = folder.strip_prefix(root()).unwrap_or(&folder).display().to_string();
        let name = folder.trim_start_matches("crates/").to_owned();
        let uses = manifest.lines().filter(|line| line.starts_with("greenroom"));
        let uses = uses.filter_map(|line| Some(line.split(['.', ' ', '=']).next()?.to_owned())).collect();
        found.insert(name, (folder, uses));
    }
    Ok(found)
}

/// The packages with files that differ from `revision`, are new, or are gone; all of them if the workspace's own differ.
fn changed(
    packages: &BTreeMap<String, (String, BTreeSet<String>)>,
    revision: &str,
) -> Result<BTreeSet<String>, String> {
    let mut files = lines(&["diff", "--name-only", revision, "--"])?;
    files.extend(lines(&["ls-files", "--others", "--exclude-standard"])?);
    if files.iter().any(|file| ["Cargo.toml", "Cargo.lock"].contains(&file.as_str())) {
        return Ok(packages.keys().cloned().collect());
    }
    let of = |file: &String| packages.iter().find(|(_, (folder, _))| file.starts_with(&format!("{folder}/")));
    Ok(files.iter().filter_map(of).map(|(name, _)| name.clone()).collect())
}

/// `names`, and all that use one of them, directly or not.
fn standing_on(
    packages: &BTreeMap<String, (String, BTreeSet<String>)>,
    mut names: BTreeSet<String>,
) -> BTreeSet<String> {
    loop {
        let more = packages.iter().filter(|(_, (_, uses))| !uses.is_disjoint(&names)).map(|(name, _)| name.clone());
        let before = names.len();
        names = more.chain(names.iter().cloned()).collect();
        if names.len() == before {
            return names;
        }
    }
}

fn lines(arguments: &[&str]) -> Result<Vec<String>, String> {
    let output = Command::new("git").args(arguments).current_dir(root()).output();
    let output = output.map_err(|error| format!("cannot ask git what has changed: {error}"))?;
    if !output.status.success() {
        return Err(format!("git {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

/// Programs that are run whatever has changed.
const ALWAYS: [&str; 1] = ["xtask tidy"];

/// Programs that take minutes: processes, engines, benchmarks and models.
const LONG: [&str; 8] = [
    "greenroom-cli processes",
    "greenroom-cli bench",
    "greenroom-cli engines",
    "greenroom-upgrade upgrade",
    "greenroom-protocols models",
    "greenroom-store-postgres postgres",
    "greenroom-store-redis redis",
    "greenroom-mistakes compile_errors",
];

/// Seeds of each simulated scenario.
const SEEDS: &str = "2";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_on_a_changed_package_is_tested_too() {
        let packages = packages().expect("the workspace is there");
        let affected = standing_on(&packages, BTreeSet::from(["greenroom-wire".to_owned()]));
        assert!(["greenroom", "greenroom-cli", "greenroom-wire"].iter().all(|name| affected.contains(*name)));
        assert!(!affected.contains("greenroom-protocols"), "it is below: {affected:?}");
    }
}
