//! `cargo xtask pace`: what users' crates cost to compile, beside other actor libraries.
//!
//! Small crates are written into `target/pace` and built there, each with its dependencies before the first look. What is told
//! is the CPU time of cargo and the compilers in user mode, which other work on the machine disturbs least.

mod functions;
mod sources;

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
    println!("user CPU seconds{:38}{:>10}{:>10}{:>10}", "", "all, cold", "own crate", "one edit");
    for profile in profiles {
        for source in SOURCES {
            let made = Crate::write(source, profile)?;
            let (cold, own, edit) = (made.cold()?, made.again()?, made.edited(source)?);
            println!("{profile:8}{:46}{cold:10.1}{own:10.1}{edit:10.1}", source.name);
        }
    }
    Ok(())
}

/// A crate that is measured.
struct Crate {
    folder: PathBuf,
    is_release: bool,
}

impl Crate {
    fn write(source: &Source, profile: &str) -> Result<Self, String> {
        let folder = target()?.join("pace").join(format!("{}-{profile}", source.folder));
        let write = |name: &str, text: &str| {
            let file = folder.join(name);
            let parent = file.parent().unwrap_or(&folder);
            let written = fs::create_dir_all(parent).and_then(|()| fs::write(&file, text));
            written.map_err(|error| format!("cannot write {}: {error}", file.display()))
        };
        // What an earlier run has built would not be cold.
        match fs::remove_dir_all(&folder) {
            Err(error) if folder.exists() => return Err(format!("cannot empty {}: {error}", folder.display())),
            _ => {}
        }
        let library = root().join("crates/greenroom");
        let dependencies = source.dependencies.replace("LIBRARY", &library.display().to_string());
        write("Cargo.toml", &format!("{HEAD}[dependencies]\n{dependencies}\n"))?;
        write("src/main.rs", &(source.text)())?;
        Ok(Self { folder, is_release: profile == "release" })
    }

    /// Everything, from nothing.
    fn cold(&self) -> Result<f64, String> {
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
        build.env("CARGO_TARGET_DIR", self.folder.join("target"));
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
