//! `cargo xtask test`: what a change must pass, cheapest first.

use std::time::Instant;

use crate::step::{cargo, run as step};
use crate::{book, chaos, engines};

/// Runs every check in order and stops at the first that fails.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let all = match options {
        [] => false,
        ["--all"] => true,
        _ => return Err(format!("`test` takes only --all, not `{}`", options.join(" "))),
    };
    let started = Instant::now();
    step("format", cargo().args(["fmt", "--all", "--check"]))?;
    let missing = if all {
        engines::install()?;
        Vec::new()
    } else {
        engines::missing()?
    };
    engines::say_skipped(&missing);
    step("lints", cargo().args(["clippy", "--all-targets"]).args(EVERYTHING).args(["--", "-D", "warnings"]))?;
    // Without a target selection cargo runs unit, integration and doc tests of every member.
    let mut tests = cargo();
    tests.args(["test", "--no-fail-fast"]).args(EVERYTHING);
    if all {
        tests.env("GREENROOM_ENGINES_REQUIRED", "1");
    }
    step("tests", &mut tests)?;
    if all {
        // What a program says of a provider that it was built without.
        step("tests without engines", cargo().args(["test", "--locked", "-p", "greenroom-stores"]))?;
        chaos::smoke(&EVERYTHING)?;
    }
    step("docs", cargo().args(["doc", "--no-deps"]).args(EVERYTHING).env("RUSTDOCFLAGS", "-D warnings"))?;
    match book::missing() {
        None => book::run(&[])?,
        Some(missing) => println!("==> SKIPPED: the guide's site: {missing}"),
    }
    engines::say_skipped(&missing);
    println!("==> all passed in {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// Every package, with every store.
const EVERYTHING: [&str; 4] = ["--workspace", "--locked", "--features", "greenroom-cli/stores"];
