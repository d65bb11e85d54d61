//! The test programs that cargo builds: run side by side, and timed.
//!
//! Cargo runs one program after the other, and many of ours wait for processes and leases more than they compute. So cargo
//! is given a runner that only writes down what it was to run, with all that cargo says in the environment; what was
//! written down is then run here.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use crate::stamps::Stamps;
use crate::step::{heard, run as step, target};

/// What has become of one test program.
pub(crate) struct Ran {
    /// Its name, as `greenroom-cli processes`.
    pub(crate) name: String,
    pub(crate) passed: bool,
    pub(crate) seconds: f64,
    /// Its tests, with the seconds of each.
    pub(crate) tests: Vec<(f64, String)>,
}

/// A test program as cargo would have run it.
pub(crate) struct Program {
    name: String,
    folder: PathBuf,
    words: Vec<OsString>,
    environment: BTreeMap<OsString, OsString>,
}

/// Lets cargo build what `tests` says, and gives the programs that it would have run. Doc tests are run at once.
fn collect(tests: &mut Command) -> Result<Vec<Program>, String> {
    let folder = target()?.join("test-programs");
    let failed = |error: io::Error| format!("cannot use {}: {error}", folder.display());
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => fs::create_dir_all(&folder).map_err(failed)?,
    }
    let this = std::env::current_exe().map_err(|error| format!("cannot say where this program is: {error}"))?;
    let runner = format!("target.'cfg(unix)'.runner = [{:?}, {NOTE:?}]", this.display().to_string());
    tests.args(["--config", &runner]).env(FOLDER_VARIABLE, &folder);
    step("test programs", tests)?;
    let mut notes: Vec<PathBuf> = fs::read_dir(&folder).map_err(failed)?.flatten().map(|entry| entry.path()).collect();
    notes.sort();
    notes.iter().map(|note| Program::read(note).map_err(failed)).collect()
}

/// Builds the programs that `tests` selects, runs those that `wanted` takes and that no stamp lets it skip, and says what became of
/// each.
///
/// # Errors
/// The programs could not be built or started. That some failed is in the result.
pub(crate) fn run(
    tests: &mut Command,
    wanted: impl Fn(&Program) -> bool,
    stamps: Option<&Stamps>,
) -> Result<Vec<Ran>, String> {
    let mut programs = Vec::new();
    for program in collect(tests)?.into_iter().filter(wanted) {
        let stamp = stamps.and_then(|stamps| stamps.stamp(&program));
        match stamps.zip(stamp.as_ref()).and_then(|(stamps, stamp)| stamps.passed(stamp)) {
            Some(time) => println!("==> SKIPPED: {} passed at {time}, built from the same sources", program.name),
            None => programs.push((program, stamp)),
        }
    }
    // From the end: the long ones begin first.
    programs.sort_by_key(|(program, _)| Reverse(LONG.iter().position(|name| program.name.ends_with(name))));
    programs.sort_by_key(|(program, _)| LONG.iter().any(|name| program.name.ends_with(name)));
    let waiting = Mutex::new(programs);
    let ran = Mutex::new(Vec::new());
    // One more than there are cores: the longest one waits more than it computes.
    let side_by_side = thread::available_parallelism().map_or(1, usize::from) + 1;
    thread::scope(|scope| {
        let runners: Vec<_> = (0..side_by_side)
            .map(|_| {
                scope.spawn(|| -> Result<(), String> {
                    loop {
                        let next = waiting.lock().map_err(|_| BROKEN)?.pop();
                        let Some((program, stamp)) = next else { return Ok(()) };
                        let one = program.run()?;
                        if let (true, Some((stamps, stamp))) = (one.passed, stamps.zip(stamp.as_ref())) {
                            stamps.note(stamp);
                        }
                        ran.lock().map_err(|_| BROKEN)?.push(one);
                    }
                })
            })
            .collect();
        runners.into_iter().try_for_each(|runner| runner.join().map_err(|_| BROKEN)?)
    })?;
    ran.into_inner().map_err(|_| BROKEN.to_owned())
}

/// What the runner does that cargo is given: writes down the test program that `words` run. Programs outside of cargo's
/// folders, those of doc tests, are run at once.
pub(crate) fn note(words: Vec<OsString>) -> ExitCode {
    match noted(words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}

fn noted(words: Vec<OsString>) -> Result<(), String> {
    let program = words.first().ok_or("the runner was given no program")?;
    let folder = PathBuf::from(std::env::var_os(FOLDER_VARIABLE).ok_or("the runner was not told where to write")?);
    let ours = folder.parent().is_some_and(|target| Path::new(program).starts_with(target));
    if !ours {
        return Err(format!("{}: {}", program.display(), Command::new(program).args(&words[1..]).exec()));
    }
    let mut text = Vec::new();
    let mut put = |field: &OsString| {
        text.extend_from_slice(field.as_bytes());
        text.push(0);
    };
    put(&std::env::current_dir().map_err(|error| error.to_string())?.into_os_string());
    put(&OsString::from(words.len().to_string()));
    words.iter().for_each(&mut put);
    for (name, value) in std::env::vars_os() {
        put(&name);
        put(&value);
    }
    let number = fs::read_dir(&folder).map_err(|error| error.to_string())?.count();
    fs::write(folder.join(format!("{number:04}")), text).map_err(|error| error.to_string())
}

impl Program {
    #[cfg(test)]
    pub(crate) fn named(name: &str, environment: &[(&str, &str)]) -> Self {
        let environment = environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { name: name.to_owned(), folder: PathBuf::new(), words: Vec::new(), environment }
    }

    fn read(note: &Path) -> io::Result<Self> {
        let text = fs::read(note)?;
        let mut fields = text.split(|byte| *byte == 0).map(|field| OsString::from_vec(field.to_vec()));
        let broken = || io::Error::new(io::ErrorKind::InvalidData, "a note is cut off");
        let folder = PathBuf::from(fields.next().ok_or_else(broken)?);
        let count: usize = fields.next().and_then(|count| count.to_str()?.parse().ok()).ok_or_else(broken)?;
        let words: Vec<OsString> = fields.by_ref().take(count).collect();
        let mut environment = BTreeMap::new();
        while let (Some(name), Some(value)) = (fields.next(), fields.next()) {
            environment.insert(name, value);
        }
        let file = words.first().ok_or_else(broken)?;
        let file = Path::new(file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let package = environment.get(&OsString::from("CARGO_PKG_NAME")).cloned().unwrap_or_default();
        // Behind the last dash is cargo's hash.
        let target = file.rsplit_once('-').map_or(file.as_str(), |(target, _)| target);
        let name = format!("{} {target}", package.to_string_lossy());
        Ok(Self { name, folder, words, environment })
    }

    /// Its environment, as far as it is text.
    pub(crate) fn environment(&self) -> impl Iterator<Item = (&str, &str)> {
        self.environment.iter().filter_map(|(name, value)| name.to_str().zip(value.to_str()))
    }

    /// Its package and its target.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn package(&self) -> &str {
        self.name.split(' ').next().unwrap_or_default()
    }

    /// Runs it to its end, and prints what it says in one piece.
    fn run(self) -> Result<Ran, String> {
        let failed = |error: io::Error| format!("{} could not be run: {error}", self.name);
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]).current_dir(&self.folder).envs(&self.environment);
        // Only so does the harness say the time of each test. Those that run a compiler must not hand that on to it.
        if !COMPILING.iter().any(|name| self.name.ends_with(name)) {
            command.args(["-Z", "unstable-options", "--report-time"]).env("RUSTC_BOOTSTRAP", "1");
        }
        let started = Instant::now();
        let (status, text) = heard(&mut command).map_err(failed)?;
        let seconds = started.elapsed().as_secs_f64();
        let mut out = io::stdout().lock();
        // A closed standard output is no reason to stop testing.
        let _ = writeln!(out, "==> {}: {seconds:.1} s", self.name);
        let _ = out.write_all(&text);
        let tests = text.lines().map_while(Result::ok).filter_map(|line| timed(&line)).collect();
        Ok(Ran { name: self.name, passed: status.success(), seconds, tests })
    }
}

/// The name and the seconds of a test, from the harness's line on it: `test name ... ok <1.234s>`.
fn timed(line: &str) -> Option<(f64, String)> {
    let (test, end) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let seconds = end.rsplit_once('<')?.1.strip_suffix("s>")?;
    Some((seconds.parse().ok()?, test.to_owned()))
}

/// What cargo's runner is called by.
pub(crate) const NOTE: &str = "note-program";

/// Where the runner writes.
const FOLDER_VARIABLE: &str = "GREENROOM_TEST_PROGRAMS";

/// Programs that take longest, the longest first.
const LONG: [&str; 8] = [
    " processes",
    " models",
    " conformance",
    " compile_errors",
    " greenroom_store_kafka",
    " nodes",
    "greenroom-cli program",
    " bench",
];

/// Programs that run a compiler.
const COMPILING: [&str; 1] = [" compile_errors"];

const BROKEN: &str = "a thread that runs test programs has panicked";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_test_is_read_from_its_line() {
        let line = "test geo::states::a_state_outlives_its_leader ... ok <12.345s>";
        assert_eq!(timed(line), Some((12.345, "geo::states::a_state_outlives_its_leader".to_owned())));
        assert_eq!(timed("test result: ok. 3 passed; 0 failed; finished in 0.00s"), None);
        assert_eq!(timed("test slow ... ok"), None);
    }

    #[test]
    fn a_noted_program_is_read_back() {
        let note = std::env::temp_dir().join(format!("greenroom-note-{}", std::process::id()));
        fs::write(&note, b"/tmp\x002\0/target/debug/deps/actors-0123\0--quiet\0CARGO_PKG_NAME\0greenroom\0")
            .expect("it is written");
        let program = Program::read(&note).expect("it is read");
        fs::remove_file(&note).expect("it is there");
        assert_eq!((program.name.as_str(), program.words.len()), ("greenroom actors", 2));
        assert_eq!(program.package(), "greenroom");
    }
}
