//! `cargo xtask test`: what a change must pass, cheapest first.

use std::time::Instant;

use crate::programs::{self, Ran};
use crate::step::{beside, cargo, run as step, say_times, took};
use crate::{book, chaos, chart, engines, languages, monitoring, pace, quick, templates, tutorial};

/// Runs every check in order and stops at the first step that fails.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let started = Instant::now();
    let done = match options {
        [] => whole(false),
        ["--all"] => whole(true),
        ["--quick"] => quick::run("HEAD"),
        ["--quick", revision] => quick::run(revision),
        _ => return Err(format!("`test` takes --all or --quick, not `{}`", options.join(" "))),
    };
    say_times();
    done?;
    println!("==> all passed in {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

fn whole(all: bool) -> Result<(), String> {
    step("format", cargo().args(["fmt", "--all", "--check"]))?;
    let missing = if all {
        engines::install()?;
        Vec::new()
    } else {
        engines::missing()?
    };
    engines::say_skipped(&missing);
    lints()?;
    // Examples are not linked, each for itself, a second time: the lints compile them, and a test runs them.
    let mut tests = cargo();
    tests.args(["test", "--no-fail-fast", "--lib", "--bins", "--tests"]).args(EVERYTHING);
    if all {
        tests.env("GREENROOM_ENGINES_REQUIRED", "1");
    }
    run_programs(&mut tests, |_| true)?;
    // Hosts and their nodes wait more than they compute.
    beside(
        || languages::run(all),
        || {
            step("doc tests", cargo().args(["test", "--doc"]).args(EVERYTHING))?;
            pace::run(&["--functions"])?;
            step("docs", cargo().args(["doc", "--no-deps"]).args(EVERYTHING).env("RUSTDOCFLAGS", "-D warnings"))?;
            match all {
                // What a program says of a provider that it was built without.
                true => step("tests without engines", cargo().args(["test", "--locked", "-p", "greenroom-stores"])),
                false => Ok(()),
            }
        },
    )?;
    if all {
        chaos::smoke()?;
        templates::other_languages()?;
        tutorial::run(&["--built"])?;
    }
    match book::missing() {
        // The tests have built the program.
        None => book::run(&["--built"])?,
        Some(missing) => println!("==> SKIPPED: the guide's site: {missing}"),
    }
    match ["helm", "compose"].into_iter().find(|program| engines::is_missing(program, &missing)) {
        None => chart::run(&[])?,
        Some(missing) => println!("==> SKIPPED: the Helm chart's renders, for want of {missing}"),
    }
    match monitoring::missing() {
        None => monitoring::run(&[])?,
        Some(missing) => println!("==> SKIPPED: rules and alerts: {missing}"),
    }
    engines::say_skipped(&missing);
    Ok(())
}

pub(crate) fn lints() -> Result<(), String> {
    step("lints", cargo().args(["clippy", "--all-targets"]).args(EVERYTHING).args(["--", "-D", "warnings"]))
}

/// Builds what `tests` selects, runs the programs of the packages that `wanted` takes, and says how long they took.
pub(crate) fn run_programs(
    tests: &mut std::process::Command,
    wanted: impl Fn(&programs::Program) -> bool,
) -> Result<(), String> {
    let started = Instant::now();
    let mut ran = programs::run(tests, wanted)?;
    took("building and running tests", started.elapsed().as_secs_f64());
    ran.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    println!("==> seconds of each test program, side by side:");
    for Ran { name, seconds, .. } in &ran {
        println!("{seconds:9.1}  {name}");
    }
    let mut tests: Vec<(f64, &str, &str)> = ran
        .iter()
        .flat_map(|ran| ran.tests.iter().map(|(seconds, test)| (*seconds, ran.name.as_str(), test.as_str())))
        .collect();
    tests.sort_by(|one, other| other.0.total_cmp(&one.0));
    println!("==> seconds of the slowest tests:");
    for (seconds, program, test) in tests.iter().take(SLOWEST) {
        println!("{seconds:9.1}  {program} {test}");
    }
    let failed: Vec<&str> = ran.iter().filter(|ran| !ran.passed).map(|ran| ran.name.as_str()).collect();
    println!("test programs: {} passed, {} failed", ran.len() - failed.len(), failed.len());
    match failed[..] {
        [] => Ok(()),
        _ => Err(format!("these test programs failed, and say above why: {}", failed.join(", "))),
    }
}

/// Every package, with every store.
pub(crate) const EVERYTHING: [&str; 4] = ["--workspace", "--locked", "--features", "greenroom-cli/stores"];

/// Tests that are named for the time that they take.
const SLOWEST: usize = 10;
