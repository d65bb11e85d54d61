//! Running a scenario under many seeds, and telling how to replay the one that failed.

use std::any::Any;
use std::env;
use std::fmt::{self, Debug};
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe, Location};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::builder::{replay_on_this_thread, take_last_trace, take_simulated};
use crate::shared::lock;

/// What a scenario may return: nothing, or a result whose error is a violation.
pub trait Outcome {
    /// What was violated, if anything.
    fn violation(self) -> Option<String>;
}

impl Outcome for () {
    fn violation(self) -> Option<String> {
        None
    }
}

impl<E: Debug> Outcome for Result<(), E> {
    fn violation(self) -> Option<String> {
        self.err().map(|error| format!("{error:?}"))
    }
}

/// Which seeds to run: a count (from seed 0) or a range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seeds(Range<u64>);

impl From<u64> for Seeds {
    fn from(count: u64) -> Self {
        Self(0..count)
    }
}

impl From<Range<u64>> for Seeds {
    fn from(range: Range<u64>) -> Self {
        Self(range)
    }
}

/// A seed under which a scenario violates what it claims.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The seed.
    pub seed: u64,
    /// The panic's message or the error.
    pub what: String,
    /// The last lines of the run's trace.
    pub trace: Vec<String>,
}

/// Runs `scenario`, called `name`, under many seeds, on as many threads as there are cores.
///
/// `GREENROOM_SEEDS=count` overrides how many; `GREENROOM_SEED=n` runs that one and prints its trace.
///
/// # Panics
/// When a run panics or returns an error: with the smallest such seed that was met, what was violated, the last lines of
/// the trace, and the command that replays it.
#[track_caller]
pub fn seeds<O: Outcome>(name: &str, seeds: impl Into<Seeds>, scenario: impl Fn(u64) -> O + Sync) {
    let caller = Location::caller();
    let began = Instant::now();
    let plan = plan(env::var("GREENROOM_SEED").ok(), env::var("GREENROOM_SEEDS").ok(), seeds.into());
    let found = match &plan {
        Plan::Replay(seed) => {
            replay_on_this_thread();
            attempt(*seed, &scenario)
        }
        Plan::Run(Seeds(range)) => {
            let (found, simulated) = search(range.clone(), &scenario);
            let ran = range.end.saturating_sub(range.start);
            let (took, hours) = (began.elapsed().as_secs_f64(), simulated.as_secs_f64() / 3600.0);
            eprintln!("{name}: {ran} seeds in {took:.1} s, {hours:.2} hours of virtual time");
            found
        }
    };
    if let Some(violation) = found {
        panic!("{name}: {violation}\n\nreplay it with\n  {}", replay_command(violation.seed, caller, name));
    }
}

/// Checks a check: under one of the seeds `within`, `scenario` must fail. Returns the first such seed found, and says it: a range
/// that begins there finds it at once for as long as the code is as it is.
///
/// Break the code on purpose (a mutation) and say so with this: a test that cannot fail is worse than none.
///
/// # Panics
/// When no seed fails.
#[track_caller]
pub fn expect_violation<O: Outcome>(
    name: &str,
    within: impl Into<Seeds>,
    scenario: impl Fn(u64) -> O + Sync,
) -> Violation {
    let Seeds(range) = within.into();
    let found = search(range.clone(), &scenario).0;
    let violation = found.unwrap_or_else(|| panic!("{name}: no violation within the seeds {range:?}"));
    eprintln!("{name}: violated by seed {}", violation.seed);
    violation
}

/// The name of the test that this thread runs: its thread is called like it.
pub fn test_name() -> String {
    let thread = thread::current();
    thread.name().and_then(|path| path.rsplit("::").next()).unwrap_or("scenario").to_owned()
}

enum Plan {
    Replay(u64),
    Run(Seeds),
}

fn plan(seed: Option<String>, count: Option<String>, Seeds(range): Seeds) -> Plan {
    let number = |text: String, name: &str| -> u64 {
        text.parse().unwrap_or_else(|_| panic!("{name}={text:?} is not a number; give a seed or a count"))
    };
    if let Some(seed) = seed {
        return Plan::Replay(number(seed, "GREENROOM_SEED"));
    }
    let end = count.map_or(range.end, |count| range.start.saturating_add(number(count, "GREENROOM_SEEDS")));
    Plan::Run(Seeds(range.start..end))
}

/// The smallest violation that was met, and the virtual time of all runs.
fn search<O: Outcome>(range: Range<u64>, scenario: &(impl Fn(u64) -> O + Sync)) -> (Option<Violation>, Duration) {
    let next = AtomicU64::new(range.start);
    let end = AtomicU64::new(range.end);
    let found: Mutex<Option<Violation>> = Mutex::new(None);
    let simulated = Mutex::new(Duration::ZERO);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end.load(Ordering::Relaxed) {
                return;
            }
            let violation = attempt(seed, scenario);
            *lock(&simulated) += take_simulated();
            if let Some(violation) = violation {
                end.fetch_min(seed, Ordering::Relaxed);
                let mut found = lock(&found);
                if found.as_ref().is_none_or(|before| before.seed > seed) {
                    *found = Some(violation);
                }
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, |cores| cores.get());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    (lock(&found).take(), *lock(&simulated))
}

fn attempt<O: Outcome>(seed: u64, scenario: &(impl Fn(u64) -> O + Sync)) -> Option<Violation> {
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| scenario(seed).violation()));
    let trace = take_last_trace();
    let what = match outcome {
        Ok(None) => return None,
        Ok(Some(what)) => what,
        Err(panic) => message(&*panic),
    };
    Some(Violation { seed, what, trace })
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a message").to_owned()
}

fn replay_command(seed: u64, caller: &Location<'_>, name: &str) -> String {
    let package = env::var("CARGO_PKG_NAME").unwrap_or_else(|_| "CRATE".into());
    let target = match caller.file().rsplit_once("tests/") {
        Some((_, file)) if !caller.file().contains("src/") => {
            format!("--test {}", file.split(['/', '.']).next().unwrap_or("FILE"))
        }
        _ => "--lib".into(),
    };
    let current = thread::current();
    let test = current.name().filter(|name| *name != "main").unwrap_or(name);
    format!("GREENROOM_SEED={seed} cargo test -p {package} {target} {test} -- --nocapture")
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {} fails: {}\n\nthe last {} lines of its trace:", self.seed, self.what, self.trace.len())?;
        self.trace.iter().try_for_each(|line| write!(f, "\n  {line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_failing_seed_is_found_by_panic_or_error() {
        let panics = expect_violation("panics", 100, |seed| assert!(seed < 40, "seed is {seed}"));
        assert_eq!((panics.seed, panics.what.as_str()), (40, "seed is 40"));
        let errs = expect_violation("errs", 100, |seed| if seed < 7 { Ok(()) } else { Err("late") });
        assert_eq!((errs.seed, errs.what.as_str()), (7, "\"late\""));
    }

    #[test]
    #[should_panic(expected = "no violation within the seeds 0..10")]
    fn a_check_that_never_fails_is_reported() {
        expect_violation("never", 10, |_| ());
    }

    #[test]
    fn the_environment_overrides_which_seeds_run() {
        let of = |seed: Option<&str>, count: Option<&str>| match plan(
            seed.map(str::to_owned),
            count.map(str::to_owned),
            Seeds(5..10),
        ) {
            Plan::Replay(seed) => seed..seed + 1,
            Plan::Run(Seeds(range)) => range,
        };
        assert_eq!(of(None, None), 5..10);
        assert_eq!(of(None, Some("100")), 5..105);
        assert_eq!(of(Some("17"), Some("100")), 17..18);
    }
}
