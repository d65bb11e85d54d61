//! `cargo xtask pace`: what users' crates cost to compile, beside other actor libraries.
//!
//! Small crates are written into `target/pace` and built there. What they stand on is built from nothing once for all that
//! stand on the same, and counts for the first of them. What is told is the CPU time of cargo and the compilers in user mode, which
//! other work on the machine disturbs least.

mod functions;
mod sources;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use self::sources::{SOURCES, Source};
use crate::step::{cargo, root, target};

/// Builds and measures in debug, in release, or both.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let profiles: &[&str] = match options {
        [] => &["debug", "release"],
        ["--debug"] => &["debug"],
        ["--release"] => &["release"],
        ["--functions"] => return functions::run(false),
        ["--functions", "--renew"] => return functions::run(true),
        _ => return Err("usage: cargo xtask pace [--debug | --release | --functions [--renew]]".to_owned()),
    };
    let mut grounds = BTreeSet::new();
    println!("user CPU seconds{:38}{:>10}{:>10}{:>10}", "", "all, cold", "own crate", "one edit");
    for profile in profiles {
        for source in SOURCES {
            let made = Crate::write(source, profile)?;
            // What was fetched would count, and what stands there would not be cold.
            made.fetch()?;
            let is_cold = grounds.insert((source.ground.folder, profile));
            if is_cold {
                made.clear()?;
            }
            let all = made.whole()?;
            let (own, edit) = (made.again()?, made.edited(source)?);
            let all = if is_cold { format!("{all:.1}") } else { "as above".to_owned() };
            println!("{profile:8}{:46}{all:>10}{own:10.1}{edit:10.1}", source.name);
        }
    }
    Ok(())
}

/// A crate that is measured.
struct Crate {
    folder: PathBuf,
    target: PathBuf,
    is_release: bool,
}

impl Crate {
    fn write(source: &Source, profile: &str) -> Result<Self, String> {
        let pace = target()?.join("pace");
        let folder = pace.join(format!("{}-{profile}", source.folder));
        let target = pace.join(format!("of-{}-{profile}", source.ground.folder));
        let write = |name: &str, text: &str| {
            let file = folder.join(name);
            let parent = file.parent().unwrap_or(&folder);
            let written = fs::create_dir_all(parent).and_then(|()| fs::write(&file, text));
            written.map_err(|error| format!("cannot write {}: {error}", file.display()))
        };
        let library = root().join("crates/greenroom");
        let dependencies = source.ground.dependencies.replace("LIBRARY", &library.display().to_string());
        write("Cargo.toml", &format!("{HEAD}[dependencies]\n{dependencies}\n"))?;
        write("src/main.rs", &(source.text)())?;
        Ok(Self { folder, target, is_release: profile == "release" })
    }

    fn fetch(&self) -> Result<(), String> {
        let mut fetch = cargo();
        fetch.args(["fetch", "--quiet"]).current_dir(&self.folder).stdin(Stdio::null());
        match fetch.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("what {} stands on was not fetched ({status})", self.folder.display())),
            Err(error) => Err(format!("cargo could not start: {error}")),
        }
    }

    /// Removes what an earlier run has built.
    fn clear(&self) -> Result<(), String> {
        match fs::remove_dir_all(&self.target) {
            Err(error) if self.target.exists() => Err(format!("cannot empty {}: {error}", self.target.display())),
            _ => Ok(()),
        }
    }

    /// Everything that is not there.
    fn whole(&self) -> Result<f64, String> {
        self.build(true)
    }

    /// The crate alone, from nothing.
    fn again(&self) -> Result<f64, String> {
        touch(&self.main())?;
        self.build(true)
    }

    /// The crate after a method's body was touched, as it is built day by day.
    fn edited(&self, source: &Source) -> Result<f64, String> {
        self.build(false)?;
        let text = (source.text)();
        let edited = text.replacen(source.before, source.after, 1);
        if edited == text {
            return Err(format!("{} has no line to edit", source.name));
        }
        fs::write(self.main(), edited).map_err(|error| format!("cannot edit {}: {error}", self.main().display()))?;
        self.build(false)
    }

    fn main(&self) -> PathBuf {
        self.folder.join("src/main.rs")
    }

    fn build(&self, whole: bool) -> Result<f64, String> {
        let before = children_seconds()?;
        let mut build = cargo();
        build.args(["build", "--quiet"]).current_dir(&self.folder).stdin(Stdio::null());
        build.env("CARGO_TARGET_DIR", &self.target);
        if self.is_release {
            build.arg("--release");
        }
        if whole {
            build.env("CARGO_INCREMENTAL", "0");
        } else {
            build.env_remove("CARGO_INCREMENTAL");
        }
        let status = build.status().map_err(|error| format!("cargo could not start: {error}"))?;
        if !status.success() {
            return Err(format!("{} was not built ({status})", self.folder.display()));
        }
        Ok(children_seconds()? - before)
    }
}

fn touch(file: &Path) -> Result<(), String> {
    let text = fs::read(file).and_then(|text| fs::write(file, text));
    text.map_err(|error| format!("cannot touch {}: {error}", file.display()))
}

/// CPU time in user mode of all processes that this one has waited for, and that those have.
fn children_seconds() -> Result<f64, String> {
    let text =
        fs::read_to_string("/proc/self/stat").map_err(|error| format!("cannot read /proc/self/stat: {error}"))?;
    // Behind the name, which may hold blanks: the state is the third field, and this the sixteenth.
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks: f64 = fields
        .split_whitespace()
        .nth(13)
        .and_then(|ticks| ticks.parse().ok())
        .ok_or("/proc/self/stat has no times of children")?;
    Ok(ticks / TICKS_PER_SECOND)
}

/// Linux shows times to its users in hundredths of a second, whatever it counts in.
const TICKS_PER_SECOND: f64 = 100.0;

const HEAD: &str = "\
[package]
name = \"paced\"
version = \"0.1.0\"
edition = \"2024\"

[workspace]

";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_has_a_line_to_edit() {
        for source in SOURCES {
            assert!((source.text)().contains(source.before), "{}", source.name);
        }
        assert!(children_seconds().expect("Linux says it") >= 0.0);
    }
}
