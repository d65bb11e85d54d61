//! `cargo xtask mutants`: breaks the protocols in one place at a time, and sees whether their tests and models notice.
//!
//! All mutants are built into one copy of the crate, each behind its number; a variable of the environment says which one is
//! alive. A mutant is dead once a test fails; one that outlives them all must be listed here with the reason.

mod bcas;
mod delivery;
mod directory;
mod gsi;
mod membership;
mod vlb;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::step::{cargo, root, target};

/// One place of a protocol, told otherwise.
struct Mutant {
    /// What the protocol then does.
    what: &'static str,
    /// The file, in the room's folder.
    file: &'static str,
    /// What stands there, once.
    code: &'static str,
    /// What stands there instead, where `mutated!()` is whether this mutant is alive.
    mutated: &'static str,
    /// Why no test can notice, if none can.
    survives: Option<&'static str>,
}

const fn mutant(what: &'static str, file: &'static str, code: &'static str, mutated: &'static str) -> Mutant {
    Mutant { what, file, code, mutated, survives: None }
}

impl Mutant {
    /// This one, which no test of its room can notice, and why.
    const fn survives(mut self, why: &'static str) -> Self {
        self.survives = Some(why);
        self
    }
}

/// A protocol: its folder, the test programs that check it beside its unit tests, the quick ones first, and its mutants.
struct Room {
    name: &'static str,
    programs: &'static [&'static str],
    mutants: &'static [Mutant],
}

const ROOMS: &[Room] = &[
    Room { name: "membership", programs: &["membership_model"], mutants: membership::MUTANTS },
    Room { name: "directory", programs: &["directory_model"], mutants: directory::MUTANTS },
    Room { name: "gsi", programs: &["gsi_model"], mutants: gsi::MUTANTS },
    Room { name: "bcas", programs: &["bcas_model"], mutants: bcas::MUTANTS },
    Room { name: "vlb", programs: &["vlb_model"], mutants: vlb::MUTANTS },
    Room {
        name: "delivery",
        programs: &["delivery", "delivery_trouble", "answers_model", "delivery_model"],
        mutants: delivery::MUTANTS,
    },
];

/// What became of a mutant.
enum Fate {
    /// A test of this program failed.
    Died(String),
    /// This program did not end with it.
    Endless(String),
    Survived,
}

/// Runs the mutants of the rooms that `options` names, or all.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    if let Some(unknown) = options.iter().find(|name| ROOMS.iter().all(|room| room.name != **name)) {
        let rooms: Vec<&str> = ROOMS.iter().map(|room| room.name).collect();
        return Err(format!("`mutants` takes names of rooms, not `{unknown}`; there are {}", rooms.join(", ")));
    }
    let copy = Copy::make()?;
    let chosen: Vec<(usize, &Room, &Mutant)> =
        numbered().filter(|(_, room, _)| options.is_empty() || options.contains(&room.name)).collect();
    copy.build(&chosen)?;
    let unlike: Vec<String> = copy.run_all(&chosen).into_iter().flatten().collect();
    let survivors = chosen.iter().filter(|(_, _, mutant)| mutant.survives.is_some()).count();
    match unlike[..] {
        [] => {
            println!(
                "==> {} mutants: {} died, {survivors} survive as expected",
                chosen.len(),
                chosen.len() - survivors
            );
            Ok(())
        }
        _ => Err(unlike.join("\n  ")),
    }
}

/// All mutants, each with the number that brings it to life.
fn numbered() -> impl Iterator<Item = (usize, &'static Room, &'static Mutant)> {
    let all = ROOMS.iter().flat_map(|room| room.mutants.iter().map(move |mutant| (room, mutant)));
    all.enumerate().map(|(before, (room, mutant))| (before + 1, room, mutant))
}

/// A copy of the crate with all mutants in it.
struct Copy {
    folder: PathBuf,
}

impl Copy {
    fn make() -> Result<Self, String> {
        let folder = target()?.join("mutants");
        let (from, to) = (root().join(CRATE), folder.join(CRATE));
        match fs::remove_dir_all(&to) {
            Err(error) if to.exists() => return Err(format!("cannot empty {}: {error}", to.display())),
            _ => {}
        }
        copy(&from, &to)?;
        copy(&root().join("Cargo.lock"), &folder.join("Cargo.lock"))?;
        let manifest = read(&root().join("Cargo.toml"))?;
        let alone = manifest.lines().map(|line| match line {
            _ if line.starts_with("members = ") => format!("members = [\"{CRATE}\"]\n"),
            _ if line.starts_with("default-members = ") => String::new(),
            _ => format!("{line}\n"),
        });
        write(&folder.join("Cargo.toml"), &alone.collect::<String>())?;
        let copy = Self { folder };
        copy.mutate()?;
        Ok(copy)
    }

    /// Puts all mutants into the copy, asleep.
    fn mutate(&self) -> Result<(), String> {
        let sources = self.folder.join(CRATE).join("src");
        let mut files: BTreeMap<PathBuf, String> = BTreeMap::new();
        for (number, room, mutant) in numbered() {
            let path = sources.join(room.name).join(mutant.file);
            if !files.contains_key(&path) {
                files.insert(path.clone(), read(&path)?);
            }
            let text = files.get_mut(&path).expect("it was just read");
            let places = text.matches(mutant.code).count();
            if places != 1 {
                return Err(format!(
                    "the mutant \"{}\" fits {places} places of {}/{}: let its code be what stands there now",
                    mutant.what, room.name, mutant.file
                ));
            }
            let mutated = mutant.mutated.replace("mutated!()", &format!("crate::is_alive({number})"));
            *text = text.replace(mutant.code, &mutated);
        }
        let lib = sources.join("lib.rs");
        let text = read(&lib)? + IS_ALIVE;
        files.insert(lib, text);
        files.iter().try_for_each(|(path, text)| write(path, text))
    }

    /// Builds the tests of the chosen ones' rooms, which pass while no mutant is alive: that is for the tests of a change to say.
    fn build(&self, chosen: &[(usize, &Room, &Mutant)]) -> Result<(), String> {
        let programs: BTreeSet<&str> = chosen.iter().flat_map(|(_, room, _)| room.programs.iter().copied()).collect();
        let named = programs.into_iter().flat_map(|program| ["--test", program]);
        let selected: Vec<&str> = ["--no-run", "--lib"].into_iter().chain(named).collect();
        let status = self.cargo_test(cargo(), 0, &selected).status();
        match status.map_err(|error| format!("cargo could not start: {error}"))? {
            status if status.success() => Ok(()),
            status => Err(format!("the mutants were not built ({status})")),
        }
    }

    /// Runs these one by one on each core, says what became of each, and returns what was not expected.
    fn run_all(&self, chosen: &[(usize, &Room, &Mutant)]) -> Vec<Option<String>> {
        let (next, cores) = (AtomicUsize::new(0), thread::available_parallelism().map_or(1, usize::from));
        thread::scope(|scope| {
            let worker = || {
                let mut unlike = Vec::new();
                while let Some((number, room, mutant)) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    unlike.push(self.judge(*number, room, mutant));
                }
                unlike
            };
            let workers: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();
            workers.into_iter().flat_map(|worker| worker.join().expect("a worker reports and does not panic")).collect()
        })
    }

    fn judge(&self, number: usize, room: &Room, mutant: &Mutant) -> Option<String> {
        let (room_name, what) = (room.name, mutant.what);
        let fate = match self.fate(number, room) {
            Ok(fate) => fate,
            Err(why) => return Some(why),
        };
        match (&fate, mutant.survives) {
            (Fate::Died(by), _) => println!("died      {room_name}: {what} ({by})"),
            (Fate::Endless(by), _) => println!("endless   {room_name}: {what} ({by})"),
            (Fate::Survived, Some(why)) => println!("survived  {room_name}: {what}\n          as {why}"),
            (Fate::Survived, None) => println!("SURVIVED  {room_name}: {what}"),
        }
        match (fate, mutant.survives) {
            (Fate::Survived, None) => Some(format!("no test of {room_name} notices that {what}")),
            (Fate::Died(_) | Fate::Endless(_), Some(_)) => {
                Some(format!("{room_name}: \"{what}\" is said to survive, and does not any more"))
            }
            _ => None,
        }
    }

    fn fate(&self, number: usize, room: &Room) -> Result<Fate, String> {
        let unit = format!("{}::", room.name);
        let suites = std::iter::once(vec!["--lib", "--", unit.as_str()]);
        let suites = suites.chain(room.programs.iter().map(|program| vec!["--test", *program]));
        for suite in suites {
            let program = suite[usize::from(suite[0] == "--test")].trim_start_matches("--");
            let ran = self.tests(number, &suite).stdout(Stdio::null()).stderr(Stdio::null()).status();
            let status = ran.map_err(|error| format!("`timeout` could not start: {error}"))?;
            match status.code() {
                Some(0) => {}
                Some(TIMED_OUT) => return Ok(Fate::Endless(program.to_owned())),
                _ => return Ok(Fate::Died(program.to_owned())),
            }
        }
        Ok(Fate::Survived)
    }

    /// Runs these tests of the copy while the mutant `number` is alive, for a time that none of them needs.
    fn tests(&self, number: usize, selected: &[&str]) -> Command {
        let mut timed = Command::new("timeout");
        timed.arg(ENDLESS).arg(cargo().get_program());
        self.cargo_test(timed, number, selected)
    }

    /// `cargo` told to take these tests of the copy, while the mutant `number` is alive.
    fn cargo_test(&self, mut cargo: Command, number: usize, selected: &[&str]) -> Command {
        cargo.args(["test", "--quiet", "-p", "greenroom-protocols"]).args(selected).current_dir(&self.folder);
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

/// The crate that is mutated.
const CRATE: &str = "crates/greenroom-protocols";

/// Says which mutant is alive.
const VARIABLE: &str = "GREENROOM_MUTANT";

/// Put at the end of the copy's `lib.rs`.
const IS_ALIVE: &str = r#"
fn is_alive(mutant: u32) -> bool {
    static ALIVE: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *ALIVE.get_or_init(|| std::env::var("GREENROOM_MUTANT").ok().and_then(|text| text.parse().ok()).unwrap_or(0)) == mutant
}
"#;

/// How long a program may run; a search that a mutant makes endless is cut.
const ENDLESS: &str = "15m";

/// What `timeout` ends with when the time is over.
const TIMED_OUT: i32 = 124;
