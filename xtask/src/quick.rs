//! `cargo xtask test --quick`: what a change must pass while it is being made.

use std::collections::BTreeSet;
use std::process::Command;

use crate::programs::Program;
use crate::step::{cargo, root, run as step};
use crate::test::{lints, run_programs, tests};
use crate::workspace::{Packages, packages};

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
    let mut tests = tests();
    tests.env("GREENROOM_SEEDS", SEEDS);
    let wanted = |program: &Program| {
        let always = ALWAYS.contains(&program.name());
        always || affected.contains(program.package()) && !LONG.contains(&program.name())
    };
    run_programs(&mut tests, wanted, None)
}

/// The packages with files that differ from `revision`, are new, or are gone; all of them if the workspace's own differ.
fn changed(packages: &Packages, revision: &str) -> Result<BTreeSet<String>, String> {
    let mut files = lines(&["diff", "--name-only", revision, "--"])?;
    files.extend(lines(&["ls-files", "--others", "--exclude-standard"])?);
    if files.iter().any(|file| ["Cargo.toml", "Cargo.lock"].contains(&file.as_str())) {
        return Ok(packages.keys().cloned().collect());
    }
    let of = |file: &String| packages.iter().find(|(_, package)| file.starts_with(&package.folder));
    Ok(files.iter().filter_map(of).map(|(name, _)| name.clone()).collect())
}

/// `names`, and all that use one of them, directly or not.
fn standing_on(packages: &Packages, mut names: BTreeSet<String>) -> BTreeSet<String> {
    loop {
        let more = packages
            .iter()
            .filter(|(_, package)| package.all_used().any(|used| names.contains(used)))
            .map(|(name, _)| name.clone());
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
