//! A copy of what is mutated, with all mutants in it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::places::{Misfit, MutatedSources};
use super::{Chosen, House, ROOMS, Room};
use crate::step::{cargo, plain, root, target};

pub(super) struct Copy {
    house: &'static House,
    folder: PathBuf,
}

impl Copy {
    /// Copies `house`, with all of its mutants asleep but those that fit nowhere.
    pub(super) fn make(house: &'static House) -> Result<(Self, Vec<Misfit>), String> {
        let folder = target()?.join("mutants").join(house.package);
        let (from, to) = (root().join(house.folder), folder.join(house.folder));
        match fs::remove_dir_all(&to) {
            Err(error) if to.exists() => return Err(format!("cannot empty {}: {error}", to.display())),
            _ => {}
        }
        copy(&from, &to)?;
        copy(&root().join("Cargo.lock"), &folder.join("Cargo.lock"))?;
        let manifest = read(&root().join("Cargo.toml"))?;
        let alone = manifest.lines().map(|line| match line {
            _ if line.starts_with("members = ") => format!("members = [\"{}\"]\n", house.members),
            _ if line.starts_with("default-members = ") => String::new(),
            _ => format!("{line}\n"),
        });
        write(&folder.join("Cargo.toml"), &alone.collect::<String>())?;
        let mut mutated = MutatedSources::of_house(house, &folder);
        let rooms = ROOMS.iter().filter(|room| room.of.package == house.package);
        for lib in rooms.map(Room::lib).collect::<BTreeSet<String>>() {
            let text = match mutated.files.remove(&lib) {
                Some(text) => text,
                None => read(&folder.join(&lib))?,
            };
            mutated.files.insert(lib, text + IS_ALIVE);
        }
        mutated.files.iter().try_for_each(|(path, text)| write(&folder.join(path), text))?;
        Ok((Self { house, folder }, mutated.misfits))
    }

    /// Builds the tests of the chosen ones' rooms, which pass while no mutant is alive: that is for the tests of a change to say.
    pub(super) fn build(&self, chosen: &[Chosen]) -> Result<(), String> {
        let programs: BTreeSet<&str> = chosen.iter().flat_map(|(_, room, _)| room.all_programs()).collect();
        let named = programs.into_iter().flat_map(|program| ["--test", program]);
        let selected: Vec<String> = ["--no-run", "--lib"].into_iter().chain(named).map(str::to_owned).collect();
        let status = self.cargo_test(cargo(), 0, &selected).status();
        match status.map_err(|error| format!("cargo could not start: {error}"))? {
            status if status.success() => Ok(()),
            status => Err(format!("the mutants were not built ({status})")),
        }
    }

    /// Runs these tests of the copy while the mutant `number` is alive, for a time that none of them needs.
    pub(super) fn tests(&self, number: usize, selected: &[String]) -> Command {
        let mut timed = plain(Command::new("timeout"));
        timed.arg(self.house.endless).arg(cargo().get_program());
        self.cargo_test(timed, number, selected)
    }

    /// `cargo` told to take these tests of the copy, while the mutant `number` is alive.
    fn cargo_test(&self, mut cargo: Command, number: usize, selected: &[String]) -> Command {
        cargo.args(["test", "--quiet", "-p", self.house.package]).args(selected).current_dir(&self.folder);
        cargo.env("CARGO_TARGET_DIR", self.folder.join("target")).env(VARIABLE, number.to_string());
        cargo
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |error| format!("cannot copy {} to {}: {error}", from.display(), to.display());
    if !from.is_dir() {
        return fs::copy(from, to).map(drop).map_err(failed);
    }
    fs::create_dir_all(to).map_err(failed)?;
    for entry in fs::read_dir(from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Says which mutant is alive.
const VARIABLE: &str = "GREENROOM_MUTANT";

/// Put at the end of the copy's `lib.rs`.
const IS_ALIVE: &str = r#"
fn is_alive(mutant: u32) -> bool {
    static ALIVE: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *ALIVE.get_or_init(|| std::env::var("GREENROOM_MUTANT").ok().and_then(|text| text.parse().ok()).unwrap_or(0)) == mutant
}
"#;
