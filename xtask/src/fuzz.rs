//! `cargo xtask fuzz`: each fuzz target for a while.

use std::process::{Command, Stdio};

use crate::step::{root, run as step};

/// How long each target runs when nothing else is asked.
const SECONDS_DEFAULT: u64 = 60;

/// Runs each target of `fuzz/`, one after the other; stops at the first that finds something.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let seconds: u64 = match options {
        [] => SECONDS_DEFAULT,
        ["--seconds", seconds] => seconds.parse().map_err(|_| format!("--seconds wants a number, not `{seconds}`"))?,
        _ => return Err("usage: cargo xtask fuzz [--seconds N]".to_owned()),
    };
    if !root().join("fuzz/Cargo.toml").exists() {
        return Err("there are no fuzz targets: fuzz/Cargo.toml does not exist".to_owned());
    }
    let listed = cargo_fuzz().arg("list").stderr(Stdio::null()).output();
    let Some(listed) = listed.ok().filter(|output| output.status.success()) else {
        return Err(INSTALL.to_owned());
    };
    for target in String::from_utf8_lossy(&listed.stdout).lines() {
        step(target, cargo_fuzz().args(["run", target, "--", &format!("-max_total_time={seconds}")]))?;
    }
    Ok(())
}

/// Cargo's fuzzer on nightly, whatever toolchain runs this program: its sanitizer needs nightly.
fn cargo_fuzz() -> Command {
    let mut command = Command::new("cargo");
    command.args(["+nightly", "fuzz"]).current_dir(root());
    command
}

const INSTALL: &str = "fuzzing needs a nightly toolchain and cargo-fuzz; to install them:
  rustup toolchain install nightly --profile minimal
  cargo install cargo-fuzz --locked";
