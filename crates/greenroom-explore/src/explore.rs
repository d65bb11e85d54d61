//! What is to be explored, and how far.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::future::Future;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use greenroom::Builder;
use greenroom_sim::{Random, test_name};

use crate::coverage::{Coverage, Seen};
use crate::deviations::Deviations;
use crate::failure::{Failure, Files};
use crate::judge::twice::differs;
use crate::reach::{Budget, Reach};
use crate::report::{self, Saved, matters};
use crate::run::{Plan, Ran, Subject};
use crate::shrink::{Shrunk, shrink};
use crate::strategy::Strategy;
use crate::world::World;

/// A test to be explored: see the [crate](crate).
#[must_use = "it does nothing before `run`"]
#[derive(Clone)]
pub struct Explore {
    equip: Rc<dyn Fn(Builder) -> Builder>,
    stores: Vec<String>,
    schedules: u64,
    time: Option<Duration>,
    reach: Reach,
    /// Nodes that actors sit on, if the test says so.
    nodes: Option<u64>,
    seed: u64,
    strategy: Strategy,
    replay: Option<String>,
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
    /// Time that it took.
    pub took: Duration,
}

impl fmt::Display for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { schedules, all, different, new_in, pairs, never, cut, steps, took } = self;
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
        write!(f, ", {:.1} s", took.as_secs_f64())
    }
}

impl Explore {
    /// Explores actors of a node that hosts what `equip` registers with it.
    pub fn of(equip: impl Fn(Builder) -> Builder + 'static) -> Self {
        let equip = Rc::new(equip);
        let strategy = Strategy::default();
        let reach = Reach::default();
        let stores = Vec::new();
        Self { equip, stores, schedules: SCHEDULES, time: None, reach, nodes: None, seed: 0, strategy, replay: None }
    }

    /// Lets kinds keep their states in a store called `name`, too: `#[actor(persistent, store = "name")]`.
    pub fn state_store(mut self, name: impl Into<String>) -> Self {
        self.stores.push(name.into());
        self
    }

    /// How many schedules are run; 1,000 by default. `GREENROOM_SCHEDULES=count` overrides it.
    pub fn schedules(mut self, schedules: u64) -> Self {
        self.schedules = schedules;
        self
    }

    /// After how many seconds no other schedule is begun; never by default. `GREENROOM_SECONDS=count` overrides it. Without
    /// [`schedules`](Self::schedules) it is all that bounds a test.
    pub fn seconds(mut self, seconds: u64) -> Self {
        self.time = Some(Duration::from_secs(seconds));
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
    ///
    /// # Panics
    /// For a kind that is not known, or that one shard cannot show.
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
        self.seed = seed;
        self
    }

    /// How schedules are chosen; [`Strategy::Mixed`] by default.
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
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
    pub fn run<F: Future<Output = ()> + 'static>(self, body: impl Fn(World) -> F + 'static) {
        match self.check(body) {
            Ok(explored) => println!("{}: {explored}", test_name()),
            Err(failure) => panic!("{}", told(&failure)),
        }
    }

    /// Explores `body`: what was explored, or what was found.
    ///
    /// # Errors
    /// The [`Failure`] that was found first, made short.
    ///
    /// # Panics
    /// If a claim that is to hold [sometimes](World::sometimes) never did, the schedule to be replayed cannot be read, no schedule is to
    /// be run, or the node cannot start.
    #[track_caller]
    pub fn check<F: Future<Output = ()> + 'static>(
        self,
        body: impl Fn(World) -> F + 'static,
    ) -> Result<Explored, Box<Failure>> {
        let nodes = self.nodes.unwrap_or(if self.reach.faults.is_empty() { 1 } else { NODES });
        let subject = Subject::new(self.equip.clone(), Reach { nodes, ..self.reach.clone() }, body);
        let subject = subject.with_stores(&self.stores);
        if let Some((replay, saved)) = self.replay.clone().map(|replay| (replay, None)).or_else(asked_to_replay) {
            return replayed(&subject, &replay, saved.as_ref());
        }
        let schedules = number_of("GREENROOM_SCHEDULES").unwrap_or(self.schedules);
        assert!(schedules > 0, "no schedule is to be run, so nothing would be tested: say how many");
        let chooser = Rc::new(RefCell::new(self.strategy.chooser()));
        let mut seeds = Random::new(self.seed);
        let (began, mut coverage, mut sometimes) = (Instant::now(), Coverage::default(), BTreeMap::new());
        let mut explored = Explored {
            schedules: 0,
            all: false,
            different: 0,
            new_in: None,
            pairs: 0,
            never: Vec::new(),
            cut: 0,
            steps: 0,
            took: Duration::ZERO,
        };
        let time = number_of("GREENROOM_SECONDS").map(Duration::from_secs).or(self.time);
        for schedule in 1..=schedules {
            if time.is_some_and(|time| schedule > 1 && began.elapsed() >= time) {
                break;
            }
            chooser.borrow_mut().begin(seeds.bits(), explored.steps);
            let ran = subject.run(Plan::Chooser(chooser.clone()), false);
            explored.steps = explored.steps.max(ran.steps);
            explored.cut += u64::from(ran.is_cut);
            ran.names.iter().for_each(|(number, name)| coverage.name(*number, name));
            if !ran.is_given_up {
                coverage.add(ran.trace, &ran.began);
            }
            for (name, seen) in &ran.sometimes {
                *sometimes.entry(name.to_string()).or_insert(false) |= seen;
            }
            if (ran.violated.is_some() || schedule % TWICE_EACH == 1)
                && let Some(why) = differs(&subject, &ran.picks)
            {
                return Err(Box::new(undecided(&subject, ran, why, (schedule, schedules))));
            }
            if ran.violated.is_some() {
                return Err(Box::new(found(&subject, ran, (schedule, schedules))));
            }
            explored.schedules = schedule;
            explored.all = explored.cut == 0 && !ran.judges_order && chooser.borrow().has_all();
            if explored.all {
                break;
            }
        }
        let never: Vec<String> = sometimes.into_iter().filter_map(|(name, seen)| (!seen).then_some(name)).collect();
        let why = "so the test proves less than it says: let its clients do more, or run more schedules";
        assert!(never.is_empty(), "never in {} schedules: {}; {why}", explored.schedules, never.join(", "));
        let Seen { traces, once, pairs, never } = coverage.seen();
        explored.new_in = (once > 0).then(|| explored.schedules.div_ceil(once));
        (explored.different, explored.pairs, explored.never) = (traces, pairs, never);
        explored.took = began.elapsed();
        Ok(explored)
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

/// Makes what was found short, and says what it depends on.
fn found(subject: &Subject, ran: Ran, schedule: (u64, u64)) -> Failure {
    let violated = ran.violated.clone().unwrap_or_default();
    let (ran, runs) = match shrink(subject, ran.picks.clone(), &violated) {
        Some(Shrunk { ran, runs }) => (ran, Some(runs)),
        None => (subject.run(Plan::Picks(ran.picks), true), None),
    };
    let matters = matters(subject, &violated, &ran.told);
    Failure::new(schedule, runs, &ran, &matters)
}

/// A schedule in which something happens that its choices do not decide.
fn undecided(subject: &Subject, ran: Ran, why: String, schedule: (u64, u64)) -> Failure {
    let ran = Ran { violated: Some(why), ..subject.run(Plan::Picks(ran.picks), true) };
    Failure::new(schedule, None, &ran, &[])
}

/// Runs one schedule: as it is written, or as it stands in a file.
fn replayed(subject: &Subject, replay: &str, saved: Option<&Saved>) -> Result<Explored, Box<Failure>> {
    let began = Instant::now();
    let mut wanted: Deviations = replay.parse().unwrap_or_else(|error| panic!("{replay:?} is no schedule: {error}"));
    subject.leave_out(wanted.take_left_out());
    let ran = subject.run(Plan::Deviations(wanted), true);
    if let Some(steps) = saved.map(|saved| &saved.steps).filter(|steps| !steps.is_empty()) {
        let same = steps.iter().zip(&ran.told).take_while(|(step, told)| **step == told.name).count();
        if same < steps.len().max(ran.told.len()) {
            println!("{}: differs from the file from step {} on: the code has changed since", test_name(), same + 1);
        }
    }
    match &ran.violated {
        Some(violated) => {
            let matters = matters(subject, violated, &ran.told);
            Err(Box::new(Failure::new((1, 1), None, &ran, &matters)))
        }
        None => {
            let (cut, took) = (u64::from(ran.is_cut), began.elapsed());
            let (steps, never) = (ran.steps, Vec::new());
            Ok(Explored { schedules: 1, all: false, different: 1, new_in: None, pairs: 0, never, cut, steps, took })
        }
    }
}

/// The schedule that `GREENROOM_REPLAY` asks for: one in words, or a file of this test. A file of another test is for that one.
fn asked_to_replay() -> Option<(String, Option<Saved>)> {
    let asked = env::var("GREENROOM_REPLAY").ok()?;
    if !Path::new(&asked).is_file() {
        return Some((asked, None));
    }
    let saved = report::read(Path::new(&asked)).unwrap_or_else(|error| panic!("{error}"));
    saved.is_of_this_test().then(|| (saved.schedule.clone(), Some(saved)))
}

/// The number in an environment variable.
fn number_of(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text:?} is not a number; give a count of schedules")))
}

/// The first schedule and one of so many run twice.
const TWICE_EACH: u64 = 64;
const SCHEDULES: u64 = 1_000;
/// Nodes that actors sit on where something may go wrong.
const NODES: u64 = 3;
