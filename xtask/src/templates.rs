//! `cargo xtask templates`: each project that `greenroom new` makes, built against this checkout and tested.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::step::{cargo, root, run as step, say, target};

/// Makes, builds and tests each, or those that are named; those in other languages too.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let (built, names): (Vec<&str>, Vec<&str>) = options.iter().partition(|option| **option == BUILT);
    if let Some(unknown) = names.iter().find(|name| PROJECTS.iter().all(|(project, _)| project != *name)) {
        let projects: Vec<&str> = PROJECTS.iter().map(|(name, _)| *name).collect();
        return Err(format!("there is no project {unknown}; there are {}", projects.join(", ")));
    }
    if built.is_empty() {
        step("the program", cargo().args(["build", "--quiet", "--locked", "--package", "greenroom-cli"]))?;
    }
    let program = target()?.join("debug/greenroom");
    let folder = target()?.join("templates");
    fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    // Nearer to the projects than the checkout's, of which a project elsewhere has nothing: they are held to rustfmt's defaults.
    let defaults = folder.join("rustfmt.toml");
    fs::write(&defaults, "").map_err(|error| format!("cannot write {}: {error}", defaults.display()))?;
    let chosen = PROJECTS.iter().filter(|(name, _)| names.is_empty() || names.contains(name));
    for (name, words) in chosen.clone() {
        let project = folder.join(name);
        drop(fs::remove_dir_all(&project));
        let mut new = Command::new("env");
        new.arg("--chdir").arg(&folder).arg(&program).args(["new", name]).args(*words).arg("--checkout").arg(root());
        step(&format!("a project: {name}"), &mut new)?;
        match words {
            ["--lang", "python"] => python(name, &project, &program)?,
            ["--lang", "typescript"] => typescript(name, &project, &program)?,
            ["--lang", _] => go(name, &project, &program)?,
            _ => rust(name, &project, &folder)?,
        }
    }
    say(&format!("==> templates: {} projects are made, built and tested", chosen.count()));
    Ok(())
}

/// Those of other languages, with the program that is built: what they take is had in seconds, where each project in Rust would
/// compile the library once more.
pub(crate) fn other_languages() -> Result<(), String> {
    run(&[BUILT, "python", "typescript", "golang"])
}

/// All in Rust build into one folder, by the versions of this checkout.
fn rust(name: &str, project: &Path, folder: &Path) -> Result<(), String> {
    let lock = root().join("Cargo.lock");
    fs::copy(&lock, project.join("Cargo.lock")).map_err(|error| format!("cannot copy {}: {error}", lock.display()))?;
    let cargo = |words: &[&str]| {
        let mut cargo = cargo();
        cargo.args(words).arg("--manifest-path").arg(project.join("Cargo.toml"));
        cargo.env("CARGO_TARGET_DIR", folder.join("target")).env("CARGO_PROFILE_DEV_DEBUG", "0");
        cargo
    };
    step(&format!("format of {name}"), cargo(&["fmt"]).args(["--", "--check"]))?;
    step(&format!("lints of {name}"), cargo(&["clippy", "--all-targets"]).args(["--", "-D", "warnings"]))?;
    step(&format!("tests of {name}"), &mut cargo(&["test"]))
}

fn python(name: &str, project: &Path, program: &Path) -> Result<(), String> {
    let environment = project.join(".venv");
    step("an environment for Python", Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    let mut pip = Command::new(environment.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--requirement"]);
    step(&format!("what {name} needs"), pip.arg(project.join("requirements.txt")))?;
    let mut tests = Command::new(environment.join("bin/python"));
    tests.args(["-m", "pytest", "--quiet", "--rootdir"]).arg(project).arg(project).env("GREENROOM_BIN", program);
    step(&format!("tests of {name}"), &mut tests)
}

fn typescript(name: &str, project: &Path, program: &Path) -> Result<(), String> {
    let sdk = root().join("sdk/typescript");
    if !sdk.join("dist/src/index.js").exists() {
        let mut install = npm(&sdk, &["install", "--no-package-lock", "--ignore-scripts"]);
        step("what the SDK for TypeScript needs", install.env("CI", "1"))?;
        step("the SDK for TypeScript", &mut npm(&sdk, &["run", "build"]))?;
    }
    step(&format!("what {name} needs"), &mut npm(project, &["install", "--ignore-scripts"]))?;
    step(&format!("tests of {name}"), npm(project, &["test"]).env("GREENROOM_BIN", program))
}

fn npm(folder: &Path, words: &[&str]) -> Command {
    let mut npm = Command::new("npm");
    npm.arg("--prefix").arg(folder).args(["--silent", "--no-audit", "--no-fund"]).args(words);
    npm
}

fn go(name: &str, project: &Path, program: &Path) -> Result<(), String> {
    let go = |words: &[&str]| {
        let mut go = Command::new("go");
        go.arg("-C").arg(project).args(words).env("GREENROOM_BIN", program);
        go
    };
    step(&format!("lints of {name}"), &mut go(&["vet", "./..."]))?;
    step(&format!("tests of {name}"), &mut go(&["test", "./..."]))
}

/// The option of who has built the program.
const BUILT: &str = "--built";

const PROJECTS: &[(&str, &[&str])] = &[
    ("memory", &[]),
    ("persistent", &["--with", "persistent"]),
    ("reliable", &["--with", "reliable"]),
    ("geo", &["--with", "geo"]),
    ("python", &["--lang", "python"]),
    ("typescript", &["--lang", "typescript"]),
    ("golang", &["--lang", "go"]),
];
