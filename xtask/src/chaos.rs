//! `cargo xtask chaos`: a cluster of real node processes under faults.

use std::path::Path;

use crate::step::{cargo, run as step, target};
use crate::test::EVERYTHING;

/// Builds the nodes with their table's provider, and the program that torments them, and runs that with `options`.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let is_release = options.contains(&"--release");
    let options: Vec<&str> = options.iter().copied().filter(|option| *option != "--release").collect();
    let mut build = cargo();
    if is_release {
        build.args(["build", "--locked", "--release", "-p", "greenroom-cli", "-p", "greenroom-chaos"]);
        build.args(["--features", PROVIDERS]);
    } else {
        // With the tests of both programs, as all tests are built: nothing is built twice.
        build.args(["test", "--no-run", "--test", "program"]).args(EVERYTHING);
    }
    step("build", &mut build)?;
    torment(&target()?.join(if is_release { "release" } else { "debug" }), &options)
}

/// A short run over few nodes, of the programs that were built with all tests.
pub(crate) fn smoke() -> Result<(), String> {
    torment(&target()?.join("debug"), &SMOKE)
}

/// Runs the program in `folder` that torments the nodes.
fn torment(folder: &Path, options: &[&str]) -> Result<(), String> {
    let value =
        |name: &str| options.iter().position(|option| *option == name).and_then(|at| options.get(at + 1)).copied();
    let table = value("--table").unwrap_or("etcd");
    let mut command = std::process::Command::new(folder.join("greenroom-chaos"));
    command.args(options);
    if value("--table").is_none() {
        command.args(["--table", table]);
    }
    if value("--program").is_none() {
        command.arg("--program").arg(folder.join("greenroom"));
    }
    if value("--logs").is_none() {
        let name = format!("{table}-{}", value("--seed").unwrap_or("1"));
        command.arg("--logs").arg(folder.parent().unwrap_or(folder).join("chaos").join(name));
    }
    step("chaos", &mut command)
}

/// A minute, of which the last third is calm: kills, freezes and cuts, a dozen of them.
const SMOKE: [&str; 8] = ["--minutes", "1", "--seed", "1", "--nodes", "3", "--table", "etcd"];

/// The providers of the tables that can be asked for: all, so that runs on several tables share one build.
const PROVIDERS: &str = "greenroom-cli/etcd,greenroom-cli/postgres";
