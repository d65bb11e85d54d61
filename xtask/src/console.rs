//! The console: its libraries as published, and its pages in a real browser.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::step::{cargo, root, run as step, target};

/// Runs the pages of three real nodes in a real browser.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    if !options.is_empty() {
        return Err("usage: cargo xtask console".to_owned());
    }
    if !Path::new(CHROMIUM).exists() {
        return Err(format!("the console's pages need {CHROMIUM} (`apt-get install chromium`)"));
    }
    let folder = target()?.join("console");
    std::fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    if !BROWSER_TOOLS.iter().all(|(name, _)| folder.join("node_modules").join(name).exists()) {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]).arg(&folder);
        npm.args(BROWSER_TOOLS.map(|(name, version)| format!("{name}@{version}")));
        step("what drives the browser", &mut npm)?;
    }
    step("the program", cargo().args(["build", "--quiet", "--package", "greenroom-cli"]))?;
    let program = target()?.join("debug/greenroom");
    let mut pages = Command::new("node");
    step("the console in a browser", pages.arg("xtask/console/pages.mjs").arg(program).arg(folder).arg(CHROMIUM))
}

/// Gets each library of `assets/vendor/lock.tsv` again, as it was published.
pub(crate) fn vendor(options: &[&str]) -> Result<(), String> {
    if !options.is_empty() {
        return Err("usage: cargo xtask vendor".to_owned());
    }
    let vendor = root().join("crates/greenroom-console/assets/vendor");
    let lock = vendor.join("lock.tsv");
    let lines = std::fs::read_to_string(&lock).map_err(|error| format!("cannot read {}: {error}", lock.display()))?;
    let folder = target()?.join("vendor");
    for line in lines.lines() {
        let [package, version, from, to, _] = line.split('\t').collect::<Vec<_>>()[..] else {
            return Err(format!(
                "{}: a line is package, version, path, name and hash, by tabs: {line}",
                lock.display()
            ));
        };
        let unpacked: PathBuf = folder.join(format!("{package}-{version}").replace('/', "-"));
        if !unpacked.exists() {
            let mut npm = Command::new("npm");
            npm.args(["install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"])
                .arg(&unpacked);
            step(package, npm.arg(format!("{package}@{version}")))?;
        }
        let file = unpacked.join("node_modules").join(package).join(from);
        let copied = std::fs::copy(&file, vendor.join(to));
        copied.map_err(|error| format!("cannot copy {}: {error}", file.display()))?;
    }
    println!("==> git says whether a file has changed; `cargo test -p greenroom-console` compares the hashes");
    Ok(())
}

const CHROMIUM: &str = "/usr/bin/chromium";
const BROWSER_TOOLS: [(&str, &str); 2] = [("playwright-core", "1.65.1"), ("axe-core", "4.14.1")];
