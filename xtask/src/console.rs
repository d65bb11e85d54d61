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
    types(&folder)?;
    step("the program", cargo().args(["build", "--quiet", "--package", "greenroom-cli"]))?;
    let program = target()?.join("debug/greenroom");
    let mut pages = Command::new("node");
    step("the console in a browser", pages.arg("xtask/console/pages.mjs").arg(program).arg(folder).arg(CHROMIUM))
}

/// Checks the types of the pages' modules, as their comments declare them, by TypeScript's compiler; says so where that cannot be had.
fn types(folder: &Path) -> Result<(), String> {
    let compiler = folder.join("node_modules/typescript/bin/tsc");
    if !compiler.exists() {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]).arg(folder);
        npm.args(BROWSER_TOOLS.iter().chain(&TYPES).map(|(name, version)| format!("{name}@{version}")));
        if let Err(why) = step("what checks types", &mut npm) {
            println!("==> SKIPPED: the types of the console's modules, as npm has no TypeScript here: {why}");
            return Ok(());
        }
    }
    // Beside copies of the modules, libraries are what their packages declare, and are not checked themselves.
    let checked = folder.join("checked");
    let failed = |error: std::io::Error| format!("cannot copy the console's modules to {}: {error}", checked.display());
    std::fs::create_dir_all(checked.join("vendor")).map_err(failed)?;
    let assets = root().join("crates/greenroom-console/assets");
    let mut modules = Vec::new();
    for entry in std::fs::read_dir(assets).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.path().extension().is_some_and(|extension| extension == "js") {
            std::fs::copy(entry.path(), checked.join(entry.file_name())).map_err(failed)?;
            modules.push(checked.join(entry.file_name()));
        }
    }
    for (module, declared) in DECLARED {
        std::fs::write(checked.join("vendor").join(module), declared).map_err(failed)?;
    }
    let mut check = Command::new("node");
    check.arg(compiler).args(["--noEmit", "--allowJs", "--checkJs", "--skipLibCheck", "--target", "es2023"]);
    check.args([
        "--module",
        "esnext",
        "--moduleResolution",
        "bundler",
        "--lib",
        "esnext,dom,dom.iterable,dom.asynciterable",
    ]);
    check.args(modules);
    step("types of the console's modules", &mut check)
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
/// What checks types, and the libraries' own declarations.
const TYPES: [(&str, &str); 4] =
    [("typescript", "5.9.3"), ("preact", "11.2.0"), ("htm", "3.1.1"), ("@preact/signals", "2.11.4")];
const DECLARED: [(&str, &str); 4] = [
    ("preact.d.mts", "export * from \"preact\";\n"),
    ("hooks.d.mts", "export * from \"preact/hooks\";\n"),
    ("htm.d.mts", "import htm from \"htm\";\nexport default htm;\n"),
    ("signals.d.mts", "export * from \"@preact/signals\";\n"),
];
const BROWSER_TOOLS: [(&str, &str); 2] = [("playwright-core", "1.65.1"), ("axe-core", "4.14.1")];
