//! `cargo xtask test`: what a change must pass, cheapest first.

use std::time::Instant;

use crate::step::{cargo, run as step};

/// Runs every check in order and stops at the first that fails.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let all = match options {
        [] => false,
        ["--all"] => true,
        _ => return Err(format!("`test` takes only --all, not `{}`", options.join(" "))),
    };
    let started = Instant::now();
    step("format", cargo().args(["fmt", "--all", "--check"]))?;
    step("lints", cargo().args(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]))?;
    // Without a target selection cargo runs unit, integration and doc tests of every member.
    step("tests", cargo().args(["test", "--workspace", "--locked"]))?;
    step("docs", cargo().args(["doc", "--workspace", "--no-deps", "--locked"]).env("RUSTDOCFLAGS", "-D warnings"))?;
    if all {
        println!("==> servers: no part needs one yet");
    }
    println!("==> all passed in {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}
