//! One schedule from its beginning: a node, its actors, the test.

use std::cell::{OnceCell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use greenroom::Builder;
use greenroom::rehearsal::{Event, Kind, Stage, Step, ask_maybe};
use greenroom_sim::Faults;
use greenroom_test::{Cluster, Stores, simulation};
use greenroom_world::LocalFuture;

use crate::deviations::{Deviation, Deviations};
use crate::driver::Driver;
use crate::judge::serial::{Path, RUNS_MAX, Serial};
use crate::judge::{States, history};
use crate::quiet::quietly;
use crate::strategy::Chooser;
use crate::world::{When, World};

/// What is tested.
#[derive(Clone)]
pub(crate) struct Subject {
    pub(crate) equip: Rc<dyn Fn(Builder) -> Builder>,
    pub(crate) body: Rc<dyn Fn(World) -> LocalFuture>,
    /// Steps of one schedule, at most.
    pub(crate) steps: usize,
    /// What clients could be told one after the other; known once somebody has asked.
    serial: Rc<OnceCell<Serial>>,
}

/// What became of a schedule.
pub(crate) struct Ran {
    /// What was violated.
    pub(crate) violated: Option<String>,
    /// Whether it was cut off.
    pub(crate) is_cut: bool,
    pub(crate) steps: usize,
    /// Tells schedules apart.
    pub(crate) trace: u64,
    /// What is to be true sometimes, and whether it was.
    pub(crate) sometimes: Vec<(Rc<str>, bool)>,
    /// The steps; only where they were asked for.
    pub(crate) told: Vec<Told>,
    /// The places of what was chosen among what could come.
    pub(crate) picks: Vec<u32>,
    /// The place of what would have come, and how many could.
    pub(crate) open: Vec<(u32, u32)>,
    /// What happened, if anybody listened.
    pub(crate) events: Vec<Event>,
    /// Whether clients are to be told nothing that they could not be told one after the other.
    pub(crate) is_linearizable: bool,
}

/// A step, for people.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) name: String,
    /// The one that would have come.
    pub(crate) instead_of: Option<String>,
    pub(crate) number: u64,
    /// All that could have come.
    pub(crate) others: Vec<String>,
    /// What the actors were after it.
    pub(crate) states: States,
}

/// Who chooses.
pub(crate) enum Plan {
    /// A strategy.
    Chooser(Rc<RefCell<Box<dyn Chooser>>>),
    /// Choices that were made before, by the places of what was chosen.
    Picks(Vec<u32>),
    /// The default order, but for these.
    Deviations(Deviations),
    /// One call of a client after the other.
    Serial(Rc<RefCell<Path>>),
}

impl Subject {
    pub(crate) fn new<F: Future<Output = ()> + 'static>(
        equip: Rc<dyn Fn(Builder) -> Builder>,
        steps: usize,
        body: impl Fn(World) -> F + 'static,
    ) -> Self {
        Self { equip, steps, body: Rc::new(move |world| Box::pin(body(world))), serial: Rc::default() }
    }

    /// Runs one schedule, and judges it.
    pub(crate) fn run(&self, plan: Plan, tell: bool) -> Ran {
        let mut ran = self.play(plan, tell);
        if ran.is_linearizable && ran.violated.is_none() && !ran.is_cut {
            let calls = history::calls(&ran.events);
            if !self.serial.get_or_init(|| self.run_serially()).explains(&calls) {
                ran.violated = Some(NOT_LINEARIZABLE.to_owned());
            }
        }
        ran
    }

    /// Runs the clients' calls one at a time, in all orders.
    fn run_serially(&self) -> Serial {
        let path = Rc::new(RefCell::new(Path::default()));
        let mut serial = Serial::default();
        loop {
            let ran = self.play(Plan::Serial(path.clone()), false);
            if ran.violated.is_none() && !ran.is_cut {
                serial.insert(&history::calls(&ran.events));
            }
            if !path.borrow_mut().next() {
                return serial;
            }
            let remedy = "let the clients make fewer calls, or fewer clients";
            assert!(serial.runs < RUNS_MAX, "more than {RUNS_MAX} orders of the calls, one at a time: {remedy}");
        }
    }

    fn play(&self, plan: Plan, tell: bool) -> Ran {
        let this = self.clone();
        quietly(|| {
            simulation(0, Faults::none()).deadline(DEADLINE).run(|sim| async move {
                let equip = this.equip.clone();
                let cluster = Cluster::over(&sim, Stores::new(&sim, &[]), move |builder, _| equip(builder));
                Stage::ask();
                cluster.start_all(&[NODE]).await;
                let stage = Stage::take().expect("a node with one shard has one stage");
                let picks = Picks { plan, trace: 0, made: Vec::new(), open: Vec::new(), told: tell.then(Vec::new) };
                let picks = Rc::new(RefCell::new(picks));
                let of_world = picks.clone();
                let world = World::new(cluster.node(NODE), move |options| of_world.borrow_mut().choose(options));
                let of_actors = world.clone();
                ask_maybe(Some(Rc::new(move |_| of_actors.choose(2) == 1)));
                let mut driver = Driver::new(stage, world.clone());
                let ended = match driver.set_up((this.body)(world.clone()), this.steps).await {
                    Ok(()) => {
                        let mut pick = |name: &dyn Fn(&Step) -> String, enabled: &[Step], default| {
                            picks.borrow_mut().pick(name, enabled, default)
                        };
                        driver.explore(&mut pick, this.steps, tell).await
                    }
                    Err(violated) => Err(format!("before any client ran: {violated}")),
                };
                ask_maybe(None);
                let claims = world.take_all();
                let sometimes = claims.iter().zip(&driver.seen).filter(|(claim, _)| claim.when == When::Sometimes);
                let Picks { trace, made, open, told, .. } = &mut *picks.borrow_mut();
                let mut told = told.take().unwrap_or_default();
                for (told, states) in told.iter_mut().zip(driver.judges.take_states()) {
                    told.states = states;
                }
                Ran {
                    is_cut: ended == Ok(false),
                    violated: ended.err(),
                    steps: driver.steps,
                    trace: *trace,
                    sometimes: sometimes.map(|(claim, seen)| (claim.name.clone(), *seen)).collect(),
                    told,
                    picks: std::mem::take(made),
                    open: std::mem::take(open),
                    events: driver.judges.take_events(),
                    is_linearizable: world.is_linearizable(),
                }
            })
        })
    }
}

/// The choices of one schedule.
struct Picks {
    plan: Plan,
    /// A hash of all that was chosen.
    trace: u64,
    made: Vec<u32>,
    open: Vec<(u32, u32)>,
    told: Option<Vec<Told>>,
}

impl Picks {
    /// A choice of the test's own.
    fn choose(&mut self, options: usize) -> usize {
        let made = self.made.len() as u64;
        let option = |at| Step { number: OWN | made << 32 | at, kind: Kind::Client, at, by: OWN, born: 0 };
        let options: Vec<Step> = (0..options as u64).map(option).collect();
        self.pick(&|option| format!("choice {}", option.at), &options, 0)
    }

    fn pick(&mut self, name: &dyn Fn(&Step) -> String, enabled: &[Step], default: usize) -> usize {
        let at = self.made.len() + 1;
        let chosen = match &mut self.plan {
            Plan::Chooser(chooser) if enabled.len() > 1 => chooser.borrow_mut().pick(enabled, default),
            Plan::Chooser(_) => 0,
            Plan::Serial(path) => path.borrow_mut().pick(enabled, default),
            Plan::Picks(picks) => picks.get(at - 1).map_or(default, |pick| *pick as usize),
            Plan::Deviations(Deviations(rest)) => match rest.first() {
                Some(Deviation { at: from, name: wanted }) if *from <= at => {
                    let names = names(name, enabled);
                    match names.iter().position(|name| name == wanted) {
                        Some(found) => {
                            rest.remove(0);
                            found
                        }
                        None => default,
                    }
                }
                _ => default,
            },
        };
        let chosen = chosen.min(enabled.len() - 1);
        self.trace = (self.trace ^ enabled[chosen].number).wrapping_mul(FNV).rotate_left(23);
        self.made.push(chosen as u32);
        self.open.push((default as u32, enabled.len() as u32));
        if let Some(told) = &mut self.told {
            let names = names(name, enabled);
            let instead_of = (chosen != default).then(|| names[default].clone());
            let (name, number) = (names[chosen].clone(), enabled[chosen].number);
            told.push(Told { name, instead_of, number, others: names, states: States::new() });
        }
        chosen
    }
}

/// What steps are called that can come at once: repeated names have numbers.
fn names(name: &dyn Fn(&Step) -> String, enabled: &[Step]) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(enabled.len());
    for step in enabled {
        let own = name(step);
        let again =
            |known: &&String| **known == own || known.strip_prefix(&own).is_some_and(|rest| rest.starts_with('#'));
        let before = names.iter().filter(again).count();
        names.push(if before == 0 { own } else { format!("{own}#{}", before + 1) });
    }
    names
}

/// What is violated when no order of the calls explains the answers.
pub(crate) const NOT_LINEARIZABLE: &str =
    "not linearizable: no order of the clients' calls, one at a time, gives these answers";
const FNV: u64 = 0x0000_0100_0000_01B3;
/// Tells choices of a test's own from steps.
pub(crate) const OWN: u64 = 3 << 62;
/// The node's name.
const NODE: &str = "a";
/// Virtual time after which a schedule fails as a whole.
const DEADLINE: Duration = Duration::from_secs(24 * 60 * 60);
