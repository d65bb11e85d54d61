//! The engines that tests run against, and the programs that judge what is deployed: which are missing, and how they are had.

use std::path::PathBuf;
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
    let judges = JUDGES.iter().filter(|(program, _)| !starts(program)).map(|(_, package)| *package);
    let packages: Vec<&str> = PACKAGES
        .iter()
        .copied()
        .filter(|package| before.iter().any(|engine| engine.contains(package)))
        .chain(judges)
        .collect();
    if before.is_empty() && packages.is_empty() {
        println!("==> engines: all are installed");
        return Ok(());
    }
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

/// Whether there is a program of this name.
pub(crate) fn starts(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}

/// Whether one of the `missing` engines is so called.
pub(crate) fn is_missing(name: &str, missing: &[String]) -> bool {
    missing.iter().any(|engine| engine.split(' ').next() == Some(name))
}

/// A program of the cache, into which it is built if it is not there.
///
/// # Errors
/// It cannot be built: what it wants is above.
pub(crate) fn built(name: &str) -> Result<PathBuf, String> {
    let mut install = cargo();
    install.args(["run", "--quiet", "--locked", "-p", "greenroom-engines", "--example", "install", "--", name]);
    let output = install.current_dir(root()).stderr(Stdio::inherit()).output();
    let said = output.map_err(|error| format!("cannot look for {name}: {error}"))?.stdout;
    let said = String::from_utf8_lossy(&said);
    let path = said.trim().strip_prefix(name).and_then(|rest| rest.strip_prefix(": "));
    path.map(PathBuf::from).ok_or_else(|| format!("{name} cannot be built; what it wants is above"))
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

/// Programs that judge what is deployed, and the packages that have them.
const JUDGES: &[(&str, &str)] = &[("promtool", "prometheus"), ("systemd-analyze", "systemd")];

/// What Debian has; an engine that is missing names its package.
const PACKAGES: &[&str] = &["postgresql", "redis-server", "openssl", "default-jre-headless", "maven"];
