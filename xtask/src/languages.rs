//! The SDKs of other languages, and clients of the gRPC door: each is installed and tested in an environment of its own, against the
//! program of this build.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::step::{cargo, root, run as step, say, target};
use crate::test::EVERYTHING;

/// Installs and tests each of them; with `all`, one whose interpreter is missing is an error.
pub(crate) fn run(all: bool) -> Result<(), String> {
    type Test = fn(bool) -> Result<(), String>;
    let tests: [(&str, Option<&str>, Test); 4] = [
        ("the SDK for TypeScript", node_is_missing(), typescript),
        ("the SDK for Go", go_is_missing("sdk/go"), go),
        // With the cases for all languages, whose probe in TypeScript has been built by then.
        ("the SDK for Python", python_is_missing(), python),
        ("the gRPC door from Go", go_is_missing(GRPC_GO), grpc_go),
    ];
    for (what, missing, test) in tests {
        match missing {
            Some(missing) if all => return Err(format!("the tests of {what} need {missing}")),
            Some(missing) => say(&format!("==> SKIPPED: {what}: {missing}")),
            None => test(all)?,
        }
    }
    Ok(())
}

/// Kills and freezes hosts and nodes and cuts lanes, for so many seconds each: while actors in Python and in Go pay each other, reminders
/// ring and messages kill their hosts, and while actors in TypeScript count.
pub(crate) fn kills(seconds: f64) -> Result<(), String> {
    if let Some(missing) = python_is_missing().or_else(|| go_is_missing("sdk/go")).or_else(node_is_missing) {
        return Err(format!("kills of hosts need {missing}"));
    }
    build_typescript()?;
    let mut kills = tool(&python_environment()?.join("pytest"), &root().join("sdk/python"));
    kills.args(["--capture=no", "-k", "each_payment or no_save"]).env("GREENROOM_BIN", program()?);
    kills.env("GREENROOM_LANGUAGES", "all").env("GREENROOM_KILL_SECONDS", format!("{seconds:.0}"));
    step("kills of hosts", &mut kills)
}

/// The programs of an environment where the SDK for Python is installed.
fn python_environment() -> Result<PathBuf, String> {
    let environment = target()?.join("sdk-python");
    let bin = environment.join("bin");
    // What came to be needed last: an environment that was made before is completed.
    if !bin.join("python-grpc-tools-protoc").exists() {
        step("an environment for Python", Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        let mut pip = Command::new(bin.join("pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check", "--editable", "sdk/python[test]"]);
        step("the SDK for Python", &mut pip)?;
    }
    Ok(bin)
}

fn python(all: bool) -> Result<(), String> {
    let bin = python_environment()?;
    let sdk = root().join("sdk/python");
    let mut probe = cargo();
    // As all tests are built, so that nothing is built twice.
    step("the probe in Rust", probe.args(["build", "--quiet"]).args(EVERYTHING).args(["--example", "probe"]))?;
    let mut tests = tool(&bin.join("pytest"), &sdk);
    tests.arg("--quiet").env("GREENROOM_BIN", program()?);
    if all {
        tests.env("GREENROOM_LANGUAGES", "all");
    }
    step("tests of the SDK for Python", &mut tests)?;
    let mut types = tool(&bin.join("pyright"), &sdk);
    step("types of the SDK for Python", types.arg("--pythonpath").arg(bin.join("python")))
}

fn npm(words: &[&str]) -> Command {
    let mut npm = Command::new("npm");
    npm.args(["--prefix", "sdk/typescript", "--silent", "--no-audit", "--no-fund"]).args(words);
    npm
}

fn install_typescript() -> Result<(), String> {
    if root().join("sdk/typescript/node_modules/typescript").exists() {
        return Ok(());
    }
    step("the SDK for TypeScript", npm(&["install", "--no-package-lock", "--ignore-scripts"]).env("CI", "1"))
}

/// Its probe, for the tests in Python.
fn build_typescript() -> Result<(), String> {
    install_typescript()?;
    step("the probe in TypeScript", &mut npm(&["run", "build"]))
}

fn typescript(all: bool) -> Result<(), String> {
    install_typescript()?;
    let mut tests = npm(&["test"]);
    tests.env("GREENROOM_BIN", program()?);
    if all {
        tests.env("GREENROOM_LANGUAGES", "all");
    }
    step("types and tests of the SDK for TypeScript", &mut tests)
}

fn go(all: bool) -> Result<(), String> {
    go_module("sdk/go", "the SDK for Go", all)
}

/// grpc-go calls the gRPC door, by what its reflection says.
fn grpc_go(all: bool) -> Result<(), String> {
    go_module(GRPC_GO, "the gRPC door from Go", all)
}

/// Lints and tests the Go module in `folder`.
fn go_module(folder: &str, what: &str, all: bool) -> Result<(), String> {
    let go = |words: &[&str]| {
        let mut go = Command::new("go");
        go.args(["-C", folder]).args(words);
        go
    };
    step(&format!("lints of {what}"), &mut go(&["vet", "./..."]))?;
    let mut tests = go(&["test", "-count=1", "./..."]);
    tests.env("GREENROOM_BIN", program()?);
    if all {
        tests.env("GREENROOM_LANGUAGES", "all");
    }
    step(&format!("tests of {what}"), &mut tests)
}

/// A tool of an environment, for the SDK at `sdk`: steps run at the root.
fn tool(program: &Path, sdk: &Path) -> Command {
    let mut tool = Command::new(program);
    tool.env("PYTHONDONTWRITEBYTECODE", "1");
    match program.ends_with("pytest") {
        true => tool.arg("--rootdir").arg(sdk).arg(sdk.join("tests")),
        false => tool.arg("--project").arg(sdk),
    };
    tool
}

/// The program that this build's tests have made.
fn program() -> Result<PathBuf, String> {
    let program = target()?.join("debug/greenroom");
    match program.exists() {
        true => Ok(program),
        false => Err(format!("{} is not there: cargo build -p greenroom-cli", program.display())),
    }
}

/// What is missing, if the Go module in `folder` cannot be tested here.
fn go_is_missing(folder: &str) -> Option<&'static str> {
    (!is_there(&["go", "-C", folder, "list", "-f", "{{.Dir}}"])).then_some("Go 1.26")
}

/// What is missing, if the SDK for TypeScript cannot be tested here.
fn node_is_missing() -> Option<&'static str> {
    let is_new = ["node", "-e", "process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)"];
    (!(is_there(&["npm", "--version"]) && is_there(&is_new))).then_some("Node 20 or later with npm")
}

/// What is missing, if the SDK for Python cannot be tested here.
fn python_is_missing() -> Option<&'static str> {
    let is_new = ["python3", "-c", "import sys, venv; sys.exit(sys.version_info < (3, 11))"];
    (!is_there(&is_new)).then_some("Python 3.11 or later with its module venv (`apt-get install python3-venv`)")
}

/// Whether a command runs, and ends well.
fn is_there(words: &[&str]) -> bool {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(root()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The module of a client of the gRPC door.
const GRPC_GO: &str = "crates/greenroom-grpc/clients/go";
