//! `cargo xtask mutants`: breaks the protocols, or the explorer, in one place at a time, and sees whether their tests and models notice.
//!
//! All mutants of a crate's tests are built into one copy, each behind its number; a variable of the environment says which one is
//! alive. A mutant is dead once a test fails; one that outlives them all must be listed here with the reason.

mod bcas;
mod copy;
mod courses;
mod delivery;
mod directory;
mod explorer;
mod gsi;
mod host;
mod membership;
mod places;
mod stage;
mod vlb;

use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use self::copy::Copy;
use self::places::Misfit;

/// One place of the code, told otherwise.
struct Mutant {
    /// What it then does.
    what: &'static str,
    /// The file, in the room's folder.
    file: &'static str,
    /// What stands there, once.
    code: &'static str,
    /// What stands there instead, where `mutated!()` is whether this mutant is alive.
    mutated: &'static str,
    /// The test that notices, where it is named: the test program, and its name in there.
    noticed_by: Option<(&'static str, &'static str)>,
    /// Why no test can notice, if none can.
    survives: Option<&'static str>,
}

const fn mutant(what: &'static str, file: &'static str, code: &'static str, mutated: &'static str) -> Mutant {
    Mutant { what, file, code, mutated, noticed_by: None, survives: None }
}

impl Mutant {
    /// This one, which this test of this test program notices; `lib` are the unit tests.
    const fn noticed_by(mut self, program: &'static str, test: &'static str) -> Self {
        self.noticed_by = Some((program, test));
        self
    }

    /// This one, which no test of its room can notice, and why.
    const fn survives(mut self, why: &'static str) -> Self {
        self.survives = Some(why);
        self
    }
}

/// What belongs together: its folder, the tests that check it beside its unit tests, the quick ones first, and its mutants.
struct Room {
    name: &'static str,
    of: &'static House,
    /// In the house's folder.
    folder: &'static str,
    suites: &'static [TestSuite],
    mutants: &'static [Mutant],
}

/// Tests of one test program: its name, and a part of the names of those tests, which is empty for all of them.
type TestSuite = (&'static str, &'static str);

/// A crate whose tests are to notice, and what is copied for that.
struct House {
    package: &'static str,
    /// What is copied, and which crates of it are the copy's workspace.
    folder: &'static str,
    members: &'static str,
    /// How long a test program may run; a search that a mutant makes endless is cut.
    endless: &'static str,
}

const PROTOCOLS: House = House {
    package: "greenroom-protocols",
    folder: "crates/greenroom-protocols",
    members: "crates/greenroom-protocols",
    endless: "15m",
};
const EXPLORER: House = House { package: "greenroom-explore", folder: "crates", members: "crates/*", endless: "4m" };
const HOUSES: [&House; 2] = [&PROTOCOLS, &EXPLORER];

const fn protocol(name: &'static str, suites: &'static [TestSuite], mutants: &'static [Mutant]) -> Room {
    Room { name, of: &PROTOCOLS, folder: "src", suites, mutants }
}

const ROOMS: &[Room] = &[
    protocol("membership", &[("models", "membership::")], membership::MUTANTS),
    protocol("directory", &[("models", "directory::")], directory::MUTANTS),
    protocol("gsi", &[("models", "gsi::")], gsi::MUTANTS),
    protocol("bcas", &[("models", "bcas::")], bcas::MUTANTS),
    protocol("vlb", &[("models", "vlb::")], vlb::MUTANTS),
    protocol("delivery", &[("delivery", ""), ("models", "answers::"), ("models", "delivery::")], delivery::MUTANTS),
    protocol("host", &[("models", "host::")], host::MUTANTS),
    protocol("courses", &[], courses::MUTANTS),
    Room { name: "stage", of: &EXPLORER, folder: "greenroom/src", suites: &[], mutants: stage::MUTANTS },
    Room { name: "explorer", of: &EXPLORER, folder: "greenroom-explore/src", suites: &[], mutants: explorer::MUTANTS },
];

impl Room {
    /// Where the file of a mutant is.
    fn path(&self, mutant: &Mutant) -> String {
        let Self { name, of: House { folder: house, .. }, folder, .. } = self;
        let within = if self.suites.is_empty() { String::new() } else { format!("{name}/") };
        format!("{house}/{folder}/{within}{}", mutant.file)
    }

    /// The crate that the mutants are in.
    fn lib(&self) -> String {
        format!("{}/{}/lib.rs", self.of.folder, self.folder)
    }

    /// The tests that are to notice a mutant: options of `cargo test`, with the suite's name.
    fn suites(&self, mutant: &Mutant) -> Vec<(String, Vec<String>)> {
        let of = |(program, tests): (&str, &str)| {
            let which =
                if program == "lib" { vec!["--lib".to_owned()] } else { vec!["--test".to_owned(), program.to_owned()] };
            let tests = ["--", tests].into_iter().map(str::to_owned).filter(|word| !word.is_empty());
            let name = format!("{program} {}", tests.clone().skip(1).collect::<String>());
            (name.trim_end().to_owned(), which.into_iter().chain(tests).collect())
        };
        match mutant.noticed_by {
            Some(suite) => vec![of(suite)],
            None => {
                let unit = format!("{}::", self.name);
                let suites = self.suites.iter().copied().map(of);
                std::iter::once(of(("lib", &unit))).chain(suites).collect()
            }
        }
    }

    /// All test programs that the room's mutants need.
    fn all_programs(&self) -> impl Iterator<Item = &'static str> {
        let named = self.mutants.iter().filter_map(|mutant| mutant.noticed_by);
        self.suites.iter().copied().chain(named).map(|(program, _)| program).filter(|program| *program != "lib")
    }
}

/// What became of a mutant.
enum Fate {
    /// A test of this program failed.
    Died(String),
    /// This program did not end with it.
    Endless(String),
    Survived,
}

/// Runs the mutants that `options` select, or all: each option is a room, or `ROOM:WORDS` for those whose description has the words.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let selections: Vec<(&str, &str)> =
        options.iter().map(|option| option.split_once(':').unwrap_or((option, ""))).collect();
    if let Some((unknown, _)) = selections.iter().find(|(name, _)| ROOMS.iter().all(|room| room.name != *name)) {
        let rooms: Vec<&str> = ROOMS.iter().map(|room| room.name).collect();
        return Err(format!("`mutants` takes names of rooms, not `{unknown}`; there are {}", rooms.join(", ")));
    }
    let is_chosen = |room: &Room, mutant: &Mutant| {
        let takes = |(name, words): &(&str, &str)| *name == room.name && mutant.what.contains(words);
        selections.is_empty() || selections.iter().any(takes)
    };
    let chosen: Vec<Chosen> = numbered().filter(|(_, room, mutant)| is_chosen(room, mutant)).collect();
    if chosen.is_empty() {
        return Err(format!("no mutant of these rooms is described by these words: {}", options.join(", ")));
    }
    let mut unlike = Vec::new();
    for house in HOUSES {
        let mut own: Vec<Chosen> =
            chosen.iter().filter(|(_, room, _)| room.of.package == house.package).copied().collect();
        if own.is_empty() {
            continue;
        }
        let (copy, misfits) = Copy::make(house)?;
        for Misfit { number, complaint } in misfits {
            if let Some(at) = own.iter().position(|(own, ..)| *own == number) {
                println!("MISFIT    {complaint}");
                own.remove(at);
                unlike.push(complaint);
            }
        }
        copy.build(&own)?;
        unlike.extend(run_all(&copy, &own).into_iter().flatten());
    }
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

/// A mutant with the number that brings it to life.
type Chosen = (usize, &'static Room, &'static Mutant);

/// All mutants, each with the number that brings it to life.
fn numbered() -> impl Iterator<Item = Chosen> {
    let all = ROOMS.iter().flat_map(|room| room.mutants.iter().map(move |mutant| (room, mutant)));
    all.enumerate().map(|(before, (room, mutant))| (before + 1, room, mutant))
}

/// Runs these one by one on each core, says what became of each, and returns what was not expected.
fn run_all(copy: &Copy, chosen: &[Chosen]) -> Vec<Option<String>> {
    let (next, cores) = (AtomicUsize::new(0), thread::available_parallelism().map_or(1, usize::from));
    thread::scope(|scope| {
        let worker = || {
            let mut unlike = Vec::new();
            while let Some((number, room, mutant)) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                unlike.push(judge(copy, *number, room, mutant));
            }
            unlike
        };
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker reports and does not panic")).collect()
    })
}

fn judge(copy: &Copy, number: usize, room: &Room, mutant: &Mutant) -> Option<String> {
    let (room_name, what) = (room.name, mutant.what);
    let fate = match fate(copy, number, room, mutant) {
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

fn fate(copy: &Copy, number: usize, room: &Room, mutant: &Mutant) -> Result<Fate, String> {
    for (by, suite) in room.suites(mutant) {
        let ran = copy.tests(number, &suite).stdout(Stdio::null()).stderr(Stdio::null()).status();
        let status = ran.map_err(|error| format!("`timeout` could not start: {error}"))?;
        match status.code() {
            Some(0) => {}
            Some(TIMED_OUT) => return Ok(Fate::Endless(by)),
            _ => return Ok(Fate::Died(by)),
        }
    }
    Ok(Fate::Survived)
}

/// What `timeout` ends with when the time is over.
const TIMED_OUT: i32 = 124;
