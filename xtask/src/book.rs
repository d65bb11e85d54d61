//! `cargo xtask book`: the guide as a site.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::step::{root, run as step};

/// Builds the site into `target/book`; a dead link or a chapter that the table of contents lacks is an error.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    if !options.is_empty() {
        return Err("usage: cargo xtask book".to_owned());
    }
    if !program().exists() {
        install()?;
    }
    let mut build = Command::new(program());
    step("book", build.args(["build", "--strict", "--quiet"]).env("NO_MKDOCS_2_WARNING", "1"))
}

/// What is missing, if the site cannot be built here.
pub(crate) fn missing() -> Option<&'static str> {
    let mut python = Command::new("python3");
    python.args(["-m", "venv", "--help"]).stdout(Stdio::null()).stderr(Stdio::null());
    let found = python.status().is_ok_and(|status| status.success());
    (!found).then_some("python3 with its module venv, for the guide's site (`apt-get install python3-venv`)")
}

/// Puts the site's builder into an environment of its own.
fn install() -> Result<(), String> {
    if let Some(missing) = missing() {
        return Err(format!("the guide's site needs {missing}"));
    }
    step("an environment for the book", Command::new("python3").args(["-m", "venv"]).arg(environment()))?;
    let pip = environment().join("bin/pip");
    step("the book's builder", Command::new(pip).args(["install", "--quiet", "--disable-pip-version-check", MKDOCS]))
}

fn program() -> PathBuf {
    environment().join("bin/mkdocs")
}

fn environment() -> PathBuf {
    root().join("target/book-builder")
}

/// The site's builder and its version.
const MKDOCS: &str = "mkdocs-material==9.8.1";
