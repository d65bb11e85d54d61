//! `cargo xtask test`: what a change must pass, cheapest first.

use std::process::Command;
use std::time::Instant;

use crate::programs::{self, Ran};
use crate::stamps::Stamps;
use crate::step::{beside, cargo, run as step, say, say_times, took};
use crate::{book, chaos, chart, engines, languages, monitoring, pace, quick, templates, times, tutorial};

/// Runs every check in order and stops at the first step that fails.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let started = Instant::now();
    let scope = |all, every, weekly| Scope { all, every, weekly };
    let done = match options {
        ["--quick"] => quick::run("HEAD"),
        ["--quick", revision] => quick::run(revision),
        _ => whole(match options {
            [] => scope(false, false, false),
            ["--every"] => scope(false, true, false),
            ["--all"] => scope(true, false, false),
            ["--all", "--every"] => scope(true, true, false),
            ["--weekly"] => scope(true, true, true),
            _ => return Err(format!("`test` takes --all, --every, --weekly or --quick, not `{}`", options.join(" "))),
        }),
    };
    let seconds = started.elapsed().as_secs_f64();
    say_times();
    if options.first() != Some(&"--quick") {
        times::keep(options, done.is_ok(), seconds);
    }
    done?;
    println!("==> all passed in {seconds:.0} s");
    Ok(())
}

/// How much a run checks.
#[derive(Clone, Copy)]
struct Scope {
    /// Installs what is missing, and skips nothing for want of it.
    all: bool,
    /// Runs repeatable programs although they have passed on the same sources.
    every: bool,
    /// Runs the steps of [`WEEKLY`] too.
    weekly: bool,
}

fn whole(scope: Scope) -> Result<(), String> {
    step("format", cargo().args(["fmt", "--all", "--check"]))?;
    let missing = if scope.all {
        engines::install()?;
        Vec::new()
    } else {
        engines::missing()?
    };
    engines::say_skipped(&missing);
    lints()?;
    let mut tests = tests();
    if scope.all {
        tests.env("GREENROOM_ENGINES_REQUIRED", "1");
    }
    let stamps = Stamps::of(&tests, scope.every);
    run_programs(&mut tests, |_| true, stamps.as_ref())?;
    // Hosts and nodes wait more than they compute.
    beside(vec![Box::new(|| hosts(scope)), Box::new(|| nodes(scope, &missing))], documentation)?;
    if scope.weekly {
        WEEKLY.iter().try_for_each(|(name, _, arguments)| step(name, cargo().args(*arguments)))?;
    }
    engines::say_skipped(&missing);
    Ok(())
}

/// The SDKs, and what is made for users of them.
fn hosts(scope: Scope) -> Result<(), String> {
    languages::run(scope.all)?;
    // They use the SDK for TypeScript, which is built by now.
    if scope.all { templates::other_languages() } else { Ok(()) }
}

/// What is done with the program that the tests have built, and what is deployed.
fn nodes(scope: Scope, missing: &[String]) -> Result<(), String> {
    if scope.all {
        chaos::smoke()?;
        tutorial::run(&["--built"])?;
    }
    match book::missing() {
        None => book::run(&["--built"])?,
        Some(missing) => say(&format!("==> SKIPPED: the guide's site: {missing}")),
    }
    match ["helm", "compose"].into_iter().find(|program| engines::is_missing(program, missing)) {
        None => chart::run(&[])?,
        Some(missing) => say(&format!("==> SKIPPED: the Helm chart's renders, for want of {missing}")),
    }
    match monitoring::missing() {
        None => monitoring::run(&[]),
        Some(missing) => {
            say(&format!("==> SKIPPED: rules and alerts: {missing}"));
            Ok(())
        }
    }
}

/// Examples and pages of the library, and the compiler's work on them.
fn documentation() -> Result<(), String> {
    step("doc tests", cargo().args(["test", "--doc"]).args(EVERYTHING))?;
    pace::run(&["--functions"])?;
    step("docs", cargo().args(["doc", "--no-deps"]).args(EVERYTHING).env("RUSTDOCFLAGS", "-D warnings"))
}

/// The tests of all packages. Examples are not among them: the lints compile them, and a test runs them.
pub(crate) fn tests() -> Command {
    let mut tests = cargo();
    tests.args(["test", "--no-fail-fast", "--tests"]).args(EVERYTHING);
    tests
}

pub(crate) fn lints() -> Result<(), String> {
    step("lints", cargo().args(["clippy", "--all-targets"]).args(EVERYTHING).args(["--", "-D", "warnings"]))
}

/// Builds what `tests` selects, runs the programs of the packages that `wanted` takes, and says how long they took.
pub(crate) fn run_programs(
    tests: &mut Command,
    wanted: impl Fn(&programs::Program) -> bool,
    stamps: Option<&Stamps>,
) -> Result<(), String> {
    let started = Instant::now();
    let mut ran = programs::run(tests, wanted, stamps)?;
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

/// Steps that are run weekly, each with the reason why not before each merge, and what cargo is told.
const WEEKLY: [(&str, &str, &[&str]); 1] = [(
    "tests without engines",
    "A second set of features builds tokio, hyper and rustls once more (40 s), for the words of one error: what a program says of a \
     provider that it was built without.",
    &["test", "--locked", "-p", "greenroom-stores"],
)];

/// Tests that are named for the time that they take.
const SLOWEST: usize = 10;
