//! Stamps: which test programs have passed, built from which sources. A [repeatable](crate::repeatable) program whose stamp is known is
//! not run again.
//!
//! A stamp is a hash of the files of all packages that the program is built from, of the lock file, the workspace's manifest and
//! cargo's settings, of the compiler's version, of what cargo was told to build, and of the program's environment. Stamps of a program are
//! lines of one file outside of the checkout. Without git, or where that file cannot be written, every program is run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::programs::Program;
use crate::repeatable::REPEATABLE;
use crate::step::root;
use crate::workspace::{Packages, packages, tested_with};
use crate::{checks, times};

/// The stamps of one run.
pub(crate) struct Stamps {
    folder: PathBuf,
    packages: Packages,
    /// Hashes of all files by their paths.
    files: BTreeMap<String, String>,
    /// The parts that all programs have in common.
    common: String,
    /// True if known stamps let no program be skipped.
    runs_every: bool,
}

/// A program, and the hash of all that it comes from.
pub(crate) struct Stamp {
    program: String,
    hash: String,
}

impl Stamps {
    /// The stamps of what `tests` builds, if there can be any; with `runs_every` they are noted, but let nothing be skipped.
    pub(crate) fn of(tests: &Command, runs_every: bool) -> Option<Self> {
        let arguments: Vec<_> = tests.get_args().map(|argument| argument.to_string_lossy()).collect();
        let compiler = Command::new("rustc").arg("-vV").output().ok()?.stdout;
        let common = format!("{}\n{}", arguments.join(" "), String::from_utf8_lossy(&compiler));
        let folder = checks::folder("stamps")?;
        Some(Self { folder, packages: packages().ok()?, files: hashes(&root())?, common, runs_every })
    }

    /// The stamp of `program`, if it is one that can have one.
    pub(crate) fn stamp(&self, program: &Program) -> Option<Stamp> {
        let (package, target) = program.name().split_once(' ')?;
        if !REPEATABLE.contains(&(package, target)) {
            return None;
        }
        let mut all = self.common.clone();
        for (name, value) in program.environment().filter(|(name, _)| matters(name)) {
            writeln!(all, "{name}={value}").ok()?;
        }
        let closure = tested_with(&self.packages, package);
        let folders: Vec<&str> =
            closure.iter().filter_map(|name| Some(self.packages.get(name)?.folder.as_str())).collect();
        for (path, hash) in &self.files {
            if SHARED.contains(&path.as_str()) || folders.iter().any(|folder| path.starts_with(folder)) {
                writeln!(all, "{hash} {path}").ok()?;
            }
        }
        Some(Stamp { program: program.name().replace(' ', "."), hash: hash(&all)? })
    }

    /// The time at which a program of this stamp has passed, if that lets this run skip it.
    pub(crate) fn passed(&self, stamp: &Stamp) -> Option<String> {
        if self.runs_every {
            return None;
        }
        let known = fs::read_to_string(self.folder.join(&stamp.program)).ok()?;
        known.lines().find_map(|line| line.strip_prefix(&stamp.hash)).map(|time| time.trim().to_owned())
    }

    /// Notes that a program of this stamp has passed. If it cannot, the program will run once more.
    pub(crate) fn note(&self, stamp: &Stamp) {
        let file = self.folder.join(&stamp.program);
        let known = fs::read_to_string(&file).unwrap_or_default();
        let others = known.lines().filter(|line| !line.starts_with(&stamp.hash));
        let newest = format!("{} {}", stamp.hash, times::now());
        let lines: Vec<&str> = std::iter::once(newest.as_str()).chain(others).take(STAMPS_MAX).collect();
        let new = self.folder.join(format!("{}.{}", stamp.program, std::process::id()));
        if fs::write(&new, lines.join("\n") + "\n").and_then(|()| fs::rename(&new, &file)).is_err() {
            println!("==> the stamp of {} cannot be kept in {}", stamp.program, self.folder.display());
        }
    }
}

/// True if a variable of the environment can change what a program does or how it is built.
fn matters(name: &str) -> bool {
    let is_read = ["GREENROOM_", "CARGO_PROFILE_", "CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS", "PROPTEST_", "TRYBUILD"];
    is_read.iter().any(|read| name.starts_with(read)) && !PLACES.contains(&name)
}

/// The hashes of all files below `root` that git tracks or would.
fn hashes(root: &Path) -> Option<BTreeMap<String, String>> {
    let listed = git(root, &["ls-files", "--cached", "--others", "--exclude-standard", "-z"], "")?;
    let paths: Vec<&str> =
        listed.split_terminator('\0').filter(|path| !path.contains('\n') && root.join(path).is_file()).collect();
    let hashes = git(root, &["hash-object", "--no-filters", "--stdin-paths"], &(paths.join("\n") + "\n"))?;
    let hashed: BTreeMap<String, String> =
        paths.iter().zip(hashes.lines()).map(|(path, hash)| ((*path).to_owned(), hash.to_owned())).collect();
    (hashes.lines().count() == paths.len()).then_some(hashed)
}

fn hash(text: &str) -> Option<String> {
    git(&root(), &["hash-object", "--stdin"], text).map(|hash| hash.trim().to_owned())
}

/// What git answers when it reads `input`.
fn git(root: &Path, arguments: &[&str], input: &str) -> Option<String> {
    let mut git = Command::new("git");
    git.args(arguments).current_dir(root).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut git = git.spawn().ok()?;
    let (mut stdin, input) = (git.stdin.take()?, input.to_owned());
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = git.wait_with_output().ok()?;
    writer.join().ok()?.ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).ok())?
}

/// Files outside of all packages from which every program is built.
const SHARED: [&str; 3] = [".cargo/config.toml", "Cargo.lock", "Cargo.toml"];

/// Variables that say only where something is kept.
const PLACES: [&str; 2] = ["GREENROOM_ENGINES_CACHE", "GREENROOM_TEST_PROGRAMS"];

/// Stamps that are kept of each program: as many branches may be checked in turn.
const STAMPS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn stamps(files: &[(&str, &str)], folder: &Path) -> Stamps {
        let files = files.iter().map(|(path, hash)| ((*path).to_owned(), (*hash).to_owned())).collect();
        let packages = packages().expect("cargo describes them");
        Stamps { folder: folder.to_owned(), packages, files, common: "rustc".to_owned(), runs_every: false }
    }

    #[test]
    fn a_program_is_skipped_until_something_differs_that_it_is_built_from() {
        let folder = std::env::temp_dir().join(format!("greenroom-stamps-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let models = Program::named("greenroom-protocols models", &[("HOME", "here")]);
        let before = stamps(&[("Cargo.lock", "1"), ("crates/greenroom-protocols/src/lib.rs", "2")], &folder);
        let stamp = before.stamp(&models).expect("it is a repeatable one");
        assert_eq!(before.passed(&stamp), None);
        before.note(&stamp);
        assert!(before.passed(&stamp).is_some());
        let skipped = |files: &[(&str, &str)], program: &Program| {
            let stamps = stamps(files, &folder);
            stamps.passed(&stamps.stamp(program).unwrap()).is_some()
        };
        let elsewhere = ("crates/greenroom/src/lib.rs", "5");
        assert!(skipped(&[("Cargo.lock", "1"), ("crates/greenroom-protocols/src/lib.rs", "2"), elsewhere], &models));
        assert!(!skipped(&[("Cargo.lock", "1"), ("crates/greenroom-protocols/src/lib.rs", "3")], &models));
        assert!(!skipped(&[("Cargo.lock", "9"), ("crates/greenroom-protocols/src/lib.rs", "2")], &models));
        let seeds = Program::named("greenroom-protocols models", &[("GREENROOM_SEEDS", "7")]);
        assert!(!skipped(&[("Cargo.lock", "1"), ("crates/greenroom-protocols/src/lib.rs", "2")], &seeds));
        let every = Stamps { runs_every: true, ..before };
        assert_eq!(every.passed(&stamp), None);
        assert!(every.stamp(&Program::named("greenroom-cli processes", &[])).is_none(), "it asks the system");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn each_file_of_the_checkout_has_a_hash_if_git_is_there() {
        if let Some(hashes) = hashes(&root()) {
            assert!(hashes.contains_key("xtask/src/stamps.rs") && hashes.contains_key("Cargo.lock"));
        }
    }
}
