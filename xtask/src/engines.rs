//! The engines that tests run against: which are missing, and how they are had.

use std::process::{Command, Stdio};

use crate::step::{cargo, root, run as step};

/// What is said of each engine that is missing, with its remedy.
pub(crate) fn missing() -> Result<Vec<String>, String> {
    let mut command = cargo();
    command.args(["run", "--quiet", "--locked", "-p", "greenroom-engines", "--example", "missing"]);
    let output = command.current_dir(root()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("cannot look for engines: {error}"))?;
    if !output.status.success() {
        return Err(format!("looking for engines failed ({})", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

/// Says loudly what was not checked.
pub(crate) fn say_skipped(missing: &[String]) {
    if missing.is_empty() {
        return;
    }
    println!("==> SKIPPED: nothing is checked against these engines (`cargo xtask test --all` installs them):");
    for engine in missing {
        println!("==> SKIPPED: {engine}");
    }
}

/// Installs what is missing: packages by apt-get, and what has none is built from its Go module, or fetched by
/// Maven, into a cache outside the checkout, once.
///
/// # Errors
/// A sentence with the remedy if anything is missing after that.
pub(crate) fn install() -> Result<(), String> {
    let before = missing()?;
    if before.is_empty() {
        println!("==> engines: all are installed");
        return Ok(());
    }
    let packages: Vec<&str> =
        PACKAGES.iter().copied().filter(|package| before.iter().any(|engine| engine.contains(package))).collect();
    if !packages.is_empty() {
        step("package lists", apt_get().arg("update"))?;
        step("packages", apt_get().args(["install", "--yes", "--no-install-recommends"]).args(packages))?;
    }
    let mut build = cargo();
    step("engines", build.args(["run", "--locked", "-p", "greenroom-engines", "--example", "install"]))?;
    match missing()? {
        none if none.is_empty() => Ok(()),
        left => Err(format!("engines are missing:\n  {}", left.join("\n  "))),
    }
}

/// apt-get, by root.
fn apt_get() -> Command {
    let id = Command::new("id").arg("-u").output();
    let is_root = id.is_ok_and(|id| id.stdout.trim_ascii() == b"0");
    let mut command = Command::new(if is_root { "apt-get" } else { "sudo" });
    if !is_root {
        command.args(["--non-interactive", "apt-get"]);
    }
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// What Debian has; an engine that is missing names its package.
const PACKAGES: &[&str] = &["postgresql", "redis-server", "openssl", "default-jre-headless", "maven"];
