//! `cargo xtask seeds`: the simulated scenarios under many seeds.

use crate::step::{cargo, run as step};

/// The package whose simulated scenarios are run.
const PACKAGE: &str = "greenroom-conformance";

/// Its test target that holds them.
const TARGET: &str = "conformance";

/// The variable from which each scenario takes the number of seeds to run.
const SEEDS_VARIABLE: &str = "GREENROOM_SEEDS";

/// Runs the scenarios named by `options` in the release profile.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let (count, name) = match options {
        ["--count", count] => (*count, None),
        ["--count", count, "--test", name] | ["--test", name, "--count", count] => (*count, Some(*name)),
        _ => return Err("usage: cargo xtask seeds --count N [--test NAME]".to_owned()),
    };
    let count: u64 = count.parse().map_err(|_| format!("--count wants a number of seeds, not `{count}`"))?;
    if count == 0 {
        return Err("--count 0 would show nothing".to_owned());
    }
    let mut command = cargo();
    command.args(["test", "--release", "--locked", "-p", PACKAGE, "--test", TARGET, "--"]);
    command.args(name).arg("--nocapture").env(SEEDS_VARIABLE, count.to_string());
    step("seeds", &mut command)
}
