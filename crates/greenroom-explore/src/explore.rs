//! What is to be explored, and how far.

use std::env;
use std::fmt;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use greenroom::Builder;
use greenroom_sim::test_name;
use tokio::runtime::Handle;

use crate::coverage::Seen;
use crate::deviations::{Deviation, Deviations};
use crate::failure::{Failure, Files};
use crate::judge::twice::differs;
use crate::reach::{Budget, Reach};
use crate::report::{self, Saved, matters};
use crate::run::{Body, Equip, Plan, Ran, Subject, Subjects, Tell};
use crate::search::{Found, Search};
use crate::shrink::{Shrunk, shrink};
use crate::strategy::Strategy;
use crate::world::World;

/// A test to be explored: see the [crate](crate).
#[must_use = "it does nothing before `run`"]
#[derive(Clone)]
pub struct Explore {
    pub(crate) equip: Equip,
    pub(crate) stores: Vec<String>,
    pub(crate) search: Search,
    pub(crate) reach: Reach,
    /// Nodes that actors sit on, if the test says so.
    nodes: Option<u64>,
    pub(crate) replay: Option<String>,
    /// Whether all traces are to be run.
    exhaustive: bool,
}

/// What was explored, and nothing found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Explored {
    /// Schedules that were run.
    pub schedules: u64,
    /// Whether there are no others, as far as schedules are explored at all.
    pub all: bool,
    /// Traces among them: schedules that differ only in the order of steps that have nothing to do with each other are one.
    pub different: u64,
    /// Of so many further schedules about one would show a trace that was not seen: Good and Turing's estimate. `None` if there was
    /// no trace that was seen only once.
    pub new_in: Option<u64>,
    /// Pairs of two methods of one actor that were seen one right behind the other.
    pub pairs: u64,
    /// Pairs that were not, although both came: `order.paid before order.created`.
    pub never: Vec<String>,
    /// Those that were cut off, as they had more steps than they may have.
    pub cut: u64,
    /// Steps of the longest.
    pub steps: usize,
    /// Of a schedule that was replayed, what was to come and did not: the code has changed since.
    pub unfit: Vec<String>,
    /// Time that it took.
    pub took: Duration,
}

impl fmt::Display for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { schedules, all, different, new_in, pairs, never, cut, steps, unfit, took } = self;
        match all {
            true => write!(f, "ok: all {different} traces, of at most {steps} steps, in {schedules} runs")?,
            false => write!(f, "ok: {schedules} schedules, {different} traces, of at most {steps} steps")?,
        }
        if let (false, Some(new_in)) = (all, new_in) {
            write!(f, " (a new one in 1 of {new_in})")?;
        }
        if pairs + never.len() as u64 > 0 {
            write!(f, ", {pairs} of {} pairs of turns", pairs + never.len() as u64)?;
        }
        if let Some(first) = never.first() {
            let others = if never.len() > 1 { format!(", and {} others", never.len() - 1) } else { String::new() };
            write!(f, " (never: {first}{others})")?;
        }
        if *cut > 0 {
            write!(f, ", {cut} of them cut off")?;
        }
        if let Some(first) = unfit.first() {
            write!(f, ", without {first:?}, which did not come: the code has changed since that was written")?;
        }
        write!(f, ", {:.1} s", took.as_secs_f64())
    }
}

impl Explore {
    /// Explores actors of a node that hosts what `equip` registers with it.
    pub fn of(equip: impl Fn(Builder) -> Builder + Send + Sync + 'static) -> Self {
        let search = Search { strategy: Strategy::default(), seed: 0, schedules: None, time: None, threads: 1 };
        let (equip, reach) = (Arc::new(equip), Reach::default());
        Self { equip, stores: Vec::new(), search, reach, nodes: None, replay: None, exhaustive: false }
    }

    /// Lets kinds keep their states in a store called `name`, too: `#[actor(persistent, store = "name")]`.
    pub fn state_store(mut self, name: impl Into<String>) -> Self {
        self.stores.push(name.into());
        self
    }

    /// How many schedules are run; 1,000 by default. `GREENROOM_SCHEDULES=count` overrides it.
    pub fn schedules(mut self, schedules: u64) -> Self {
        self.search.schedules = Some(schedules);
        self
    }

    /// After how many seconds no other schedule is begun; never by default. `GREENROOM_SECONDS=count` overrides it. Without
    /// [`schedules`](Self::schedules) it is all that bounds a test.
    pub fn seconds(mut self, seconds: u64) -> Self {
        self.search.time = Some(Duration::from_secs(seconds));
        self
    }

    /// After how many steps a schedule is cut off; 10,000 by default. In its second half nothing goes wrong any more and all get
    /// their turns: see [`patience`](Self::patience).
    pub fn steps(mut self, steps: usize) -> Self {
        self.reach.steps = steps;
        self.reach.patience = self.reach.patience.min(steps / 2);
        self
    }

    /// For how many steps a schedule that does not end may leave something open once all get their turns: a monitor may be
    /// [hot](crate::Verdict::Hot), or what is to be true [in the end](World::eventually) be false; 5,000 by default, or half of
    /// [`steps`](Self::steps).
    ///
    /// # Panics
    /// If a schedule has no so many.
    #[track_caller]
    pub fn patience(mut self, patience: usize) -> Self {
        let most = self.reach.steps / 2;
        assert!(patience <= most, "a schedule of {} steps has {most} fair ones: say `steps` first", self.reach.steps);
        self.reach.patience = patience;
        self
    }

    /// What may go wrong, and how often in one schedule: `"crash, lose:2"`, or `"all"`; nothing by default. A kind without a count comes
    /// once, and all kinds together twice.
    ///
    /// | | |
    /// |---|---|
    /// | `crash` | a node is gone: its activations and their timers, wherever they are; calls under way to it and from it end as unknown, and other messages are lost |
    /// | `lose` | a message between two nodes, or its answer: its call ends as unknown |
    /// | `late` | a call's deadline passes while its message waits, or while its turn runs, which goes on |
    /// | `idle` | an activation ends as if nobody had used it |
    /// | `store` | a store refuses a read or a write of a state; or nobody knows whether it has written, and it has, has not, or will later |
    /// | `pause` | a node sleeps beyond its lease: as `crash`, but what it had sent is still under way, and comes before or after what its actors send elsewhere |
    /// | `move` | an actor with a state goes to another node between two turns: what was sent to it before may come after what is sent then |
    /// | `repeat` | a message that a reliable actor has sent [at least once](greenroom::Call::at_least_once) comes once more |
    /// | `skew` | a node's wall clock goes ahead by a minute: what a [reliable](greenroom::Call::after) timer there is for comes so much sooner |
    ///
    /// # Panics
    /// For a kind that is not known.
    #[track_caller]
    pub fn faults(mut self, faults: impl AsRef<str>) -> Self {
        self.reach.faults = Budget::parse(faults.as_ref()).unwrap_or_else(|error| panic!("{error}"));
        self
    }

    /// On how many nodes the actors sit, between which messages can be lost; which one sits where is a choice of the schedule. One by
    /// default, three with [`faults`](Self::faults). Clients are on none.
    ///
    /// # Panics
    /// If there are none, or more than 26.
    #[track_caller]
    pub fn nodes(mut self, nodes: u64) -> Self {
        assert!((1..=26).contains(&nodes), "actors sit on 1 to 26 nodes, not on {nodes}");
        self.nodes = Some(nodes);
        self
    }

    /// When timers and sleeps are over: `"any_time"`, the default, in the order in which they are due, however slow messages are; or
    /// `"in_time"`, only when nothing else is left to do. Calls run out of time only then, or by [`faults`](Self::faults).
    ///
    /// # Panics
    /// For other words.
    #[track_caller]
    pub fn timers(mut self, timers: impl AsRef<str>) -> Self {
        self.reach.in_time = match timers.as_ref() {
            "in_time" => true,
            "any_time" => false,
            other => panic!("timers go off \"in_time\" or at \"any_time\", not {other:?}"),
        };
        self
    }

    /// What decides all that is random; 0 by default.
    pub fn seed(mut self, seed: u64) -> Self {
        self.search.seed = seed;
        self
    }

    /// How schedules are chosen; [`Strategy::Mixed`] by default.
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.search.strategy = strategy;
        self
    }

    /// On how many threads schedules are run; one by default. `GREENROOM_THREADS=count` overrides it. What is found, and which schedule is
    /// the first to show it, does not depend on it.
    ///
    /// # Panics
    /// If there are none.
    #[track_caller]
    pub fn threads(mut self, threads: usize) -> Self {
        assert!(threads > 0, "schedules are run on one thread at least");
        self.search.threads = threads;
        self
    }

    /// Whether it fails if it has not run all traces: what ends by itself today may not when the actors have grown. Not by default.
    pub fn exhaustive(mut self, exhaustive: bool) -> Self {
        self.exhaustive = exhaustive;
        self
    }

    /// Whether a test breaks if clients wait for what never comes; true by default. Else they are given up, and the schedule is judged as if
    /// it had ended.
    pub fn deadlocks(mut self, deadlocks: bool) -> Self {
        self.reach.deadlocks = deadlocks;
        self
    }

    /// Whether a test breaks if a client or a turn panics; true by default. Else that is over for them, as in production. What the test
    /// says itself, in its body and behind the end, may not in any case.
    pub fn panics(mut self, panics: bool) -> Self {
        self.reach.panics = panics;
        self
    }

    /// Runs one schedule, as a failure tells it: a test that broke once does not break again. `GREENROOM_REPLAY=schedule`
    /// does the same, as does the name of a file that a failure was saved to.
    pub fn replay(mut self, schedule: impl Into<String>) -> Self {
        self.replay = Some(schedule.into());
        self
    }

    /// Explores `body`, and says what was explored.
    ///
    /// # Panics
    /// With the [`Failure`] that was found; if a claim that is to hold [sometimes](World::sometimes) never did; if the
    /// schedule to be replayed cannot be read.
    #[track_caller]
    pub fn run<F: Future<Output = ()> + 'static>(self, body: impl Fn(World) -> F + Send + Sync + 'static) {
        match self.check(body) {
            Ok(explored) => println!("{}: {explored}{}", test_name(), advice(OPT_LEVEL, explored.took)),
            Err(failure) => panic!("{}", told(&failure)),
        }
    }

    /// Explores `body`: what was explored, or what was found.
    ///
    /// # Errors
    /// The [`Failure`] that was found first, made short.
    ///
    /// # Panics
    /// If a claim that is to hold [sometimes](World::sometimes) never did, nothing was left to explore behind the set-up, or
    /// [`finally`](World::finally) was never asked; if not all traces were run and that was [asked for](Self::exhaustive); if the schedule
    /// to be replayed cannot be read, no schedule is to be run, or the node cannot start; and inside of async code.
    #[track_caller]
    pub fn check<F: Future<Output = ()> + 'static>(
        self,
        body: impl Fn(World) -> F + Send + Sync + 'static,
    ) -> Result<Explored, Box<Failure>> {
        let remedy = "call it in a plain `#[test]`, or from a thread of its own";
        assert!(
            Handle::try_current().is_err(),
            "a test is not explored inside of async code, nor of another test: {remedy}"
        );
        let nodes = self.nodes.unwrap_or(if self.reach.faults.is_empty() { 1 } else { NODES });
        let body: Body = Arc::new(move |world| Box::pin(body(world)));
        let (equip, stores, reach) = (self.equip.clone(), self.stores.clone().into(), self.reach.clone());
        let subjects = Subjects { equip, stores, body, reach: Reach { nodes, ..reach }, test: test_name() };
        let subject = subjects.subject();
        if let Some((replay, saved)) = self.replay.clone().map(|replay| (replay, None)).or_else(asked_to_replay) {
            return replayed(&subject, &replay, saved.as_ref());
        }
        let search = self.search.clone().overridden();
        assert!(search.schedules != Some(0), "no schedule is to be run, so nothing would be tested: say how many");
        let began = Instant::now();
        let searched = search.run(&subject, &subjects);
        if let Some(found) = searched.found {
            return Err(Box::new(told_of(&subject, found, search.bound())));
        }
        let never: Vec<&str> =
            searched.sometimes.iter().filter_map(|(name, seen)| (!seen).then_some(name.as_str())).collect();
        let why = "so the test proves less than it says: let its clients do more, or run more schedules";
        assert!(never.is_empty(), "never in {} schedules: {}; {why}", searched.schedules, never.join(", "));
        let unasked = searched.is_unjudged && !searched.has_ended;
        let remedy = "let a schedule have more `steps`, or claim it by `always` or `eventually`";
        assert!(!unasked, "`finally` was never asked, as all {} schedules were cut off: {remedy}", searched.schedules);
        assert!(
            searched.steps > 0,
            "nothing was explored: what the test's body awaits is set-up; let `world.client`s call the actors"
        );
        let remedy = "let there be more schedules, or fewer clients and calls; where something is claimed of what lies between \
                      (`always`, `sometimes`, monitors, `linearizable`), only `Strategy::All` ends";
        assert!(
            !self.exhaustive || searched.all,
            "not all traces were run in {} schedules: {remedy}",
            searched.schedules
        );
        let Seen { traces, once, pairs, never } = searched.coverage.seen();
        Ok(Explored {
            schedules: searched.schedules,
            all: searched.all,
            different: traces,
            new_in: (once > 0).then(|| searched.schedules.div_ceil(once)),
            pairs,
            never,
            cut: searched.cut,
            steps: searched.steps,
            unfit: Vec::new(),
            took: began.elapsed(),
        })
    }
}

impl Explore {
    /// The options that were set and that are about schedules alone.
    pub(crate) fn of_schedules(&self) -> Vec<&'static str> {
        let (search, reach, by_default) = (&self.search, &self.reach, Reach::default());
        let set = [
            ("seconds", search.time.is_some()),
            ("seed", search.seed != 0),
            ("strategy", search.strategy != Strategy::default()),
            ("threads", search.threads != 1),
            ("steps", reach.steps != by_default.steps),
            ("patience", reach.patience != by_default.patience),
            ("nodes", self.nodes.is_some()),
            ("timers", reach.in_time),
            ("deadlocks", !reach.deadlocks),
            ("panics", !reach.panics),
            ("exhaustive", self.exhaustive),
            ("replay", self.replay.is_some()),
        ];
        set.into_iter().filter_map(|(name, is_set)| is_set.then_some(name)).collect()
    }
}

impl Search {
    /// As the environment wants it.
    fn overridden(mut self) -> Self {
        self.schedules = number_of("GREENROOM_SCHEDULES").or(self.schedules);
        self.time = number_of("GREENROOM_SECONDS").map(Duration::from_secs).or(self.time);
        self.threads = number_of("GREENROOM_THREADS").map_or(self.threads, |threads| threads.max(1) as usize);
        self
    }
}

/// A failure, and where it was written to.
fn told(failure: &Failure) -> String {
    match failure.save() {
        Ok(Files { page, schedule }) => {
            format!(
                "{failure}\n  look, step         {}\n                     greenroom replay {}",
                page.display(),
                schedule.display()
            )
        }
        Err(error) => format!("{failure}\n  it could not be written to {}: {error}", report::folder().display()),
    }
}

/// Makes what was found short, and says what it depends on; or in what its choices do not decide it.
fn told_of(subject: &Subject, found: Found, schedules: Option<u64>) -> Failure {
    let Found { schedule, picks, violated, undecided } = found;
    let schedule = (schedule, schedules);
    if undecided.is_some() {
        let ran = Ran { violated: undecided, ..subject.run(Plan::Picks(picks), Tell::All) };
        return Failure::new(schedule, None, &ran, &[]);
    }
    let (ran, runs) = match shrink(subject, picks.clone(), &violated) {
        Some(Shrunk { ran, runs }) => (ran, Some(runs)),
        None => (subject.run(Plan::Picks(picks), Tell::All), None),
    };
    let matters = matters(subject, &violated, &ran.told);
    Failure::new(schedule, runs, &ran, &matters)
}

/// Runs one schedule: as it is written, or as it stands in a file.
fn replayed(subject: &Subject, replay: &str, saved: Option<&Saved>) -> Result<Explored, Box<Failure>> {
    let began = Instant::now();
    let mut wanted: Deviations =
        replay.parse().unwrap_or_else(|error: String| panic!("{}", no_schedule(replay, &error)));
    subject.leave_out(wanted.take_left_out());
    let first = subject.run(Plan::Deviations(wanted), Tell::Steps);
    let undecided = differs(subject, &first);
    let again = subject.run(Plan::Picks(first.picks), Tell::All);
    let ran = Ran { violated: undecided.or(again.violated), unfit: first.unfit, ..again };
    if let Some(steps) = saved.map(|saved| &saved.steps).filter(|steps| !steps.is_empty()) {
        let same = steps.iter().zip(&ran.told).take_while(|(step, told)| **step == told.name).count();
        if same < steps.len().max(ran.told.len()) {
            println!("{}: differs from the file from step {} on: the code has changed since", test_name(), same + 1);
        }
    }
    match &ran.violated {
        Some(violated) => {
            let matters = matters(subject, violated, &ran.told);
            Err(Box::new(Failure::new((1, Some(1)), None, &ran, &matters)))
        }
        None => {
            let (cut, took) = (u64::from(ran.is_cut), began.elapsed());
            let (steps, never) = (ran.steps, Vec::new());
            let unfit = ran.unfit.iter().map(Deviation::to_string).collect();
            Ok(Explored {
                schedules: 1,
                all: false,
                different: 1,
                new_in: None,
                pairs: 0,
                never,
                cut,
                steps,
                unfit,
                took,
            })
        }
    }
}

/// The schedule that `GREENROOM_REPLAY` asks for: one in words, or a file of this test. A file of another test is for that one.
fn asked_to_replay() -> Option<(String, Option<Saved>)> {
    let asked = env::var("GREENROOM_REPLAY").ok().filter(|asked| !asked.is_empty())?;
    if !Path::new(&asked).is_file() {
        return Some((asked, None));
    }
    let saved = report::read(Path::new(&asked)).unwrap_or_else(|error| panic!("{error}"));
    saved.is_of_this_test().then(|| (saved.schedule.clone(), Some(saved)))
}

/// Why nothing can be replayed.
fn no_schedule(replay: &str, error: &str) -> String {
    let folder = env::current_dir().unwrap_or_default();
    format!(
        "{replay:?} is no schedule, as {error}, and no file in {}: give what a failure says behind `replay =`, or by GREENROOM_REPLAY the \
         whole path of its file",
        folder.display()
    )
}

/// What makes a test quicker that took so long, in a program that is optimised so far.
fn advice(opt_level: &str, took: Duration) -> &'static str {
    match opt_level {
        "0" if took > LONG => {
            "; several times as many in a second with `[profile.dev.package.\"*\"]` and `opt-level = 1` in Cargo.toml"
        }
        _ => "",
    }
}

/// The number in an environment variable.
fn number_of(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text:?} is not a number; give a count")))
}

/// Nodes that actors sit on where something may go wrong.
const NODES: u64 = 3;
/// Of this crate, by its build script.
const OPT_LEVEL: &str = env!("GREENROOM_EXPLORE_OPT_LEVEL");
/// Who waits no longer than this for a test wants no advice.
const LONG: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_test_that_is_not_optimised_says_what_helps() {
        assert!(advice("0", Duration::from_secs(3)).contains("opt-level = 1"));
        assert_eq!(advice("0", Duration::from_millis(3)), "");
        assert_eq!(advice("1", Duration::from_secs(3)), "");
        assert_ne!(OPT_LEVEL, "", "the build script says it");
    }
}
