//! One schedule from its beginning: the test's body, its clients, its end.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use greenroom::rehearsal::{Event, Kind, Step, ask_maybe, mix};
use greenroom::{Builder, Node};
use greenroom_world::LocalFuture;

use crate::coverage::Began;
use crate::deviations::{Deviation, Deviations};
use crate::driver::{Driver, Ended, Names};
use crate::hall::Hall;
use crate::judge::serial::{Path, RUNS_MAX, Serial};
use crate::judge::{States, history};
use crate::numbers::Numbers;
use crate::quiet::quietly;
use crate::reach::Reach;
use crate::strategy::Chooser;
use crate::trace::Trace;
use crate::vigil::Vigil;
use crate::world::{Course, Kinds, When, World};

/// What is tested, for each thread that runs it.
pub(crate) struct Subjects {
    pub(crate) equip: Equip,
    /// Beside the node's own, stores for states by their names.
    pub(crate) stores: Arc<[String]>,
    pub(crate) body: Body,
    pub(crate) reach: Reach,
    /// What the test is called.
    pub(crate) test: String,
}

/// Registers what a node hosts.
pub(crate) type Equip = Arc<dyn Fn(Builder) -> Builder + Send + Sync>;
/// A test's body.
pub(crate) type Body = Arc<dyn Fn(World) -> LocalFuture + Send + Sync>;

impl Subjects {
    /// That of one thread.
    pub(crate) fn subject(&self) -> Subject {
        let Self { equip, stores, body, reach, test } = self;
        Subject {
            equip: equip.clone(),
            kinds: kinds_of(equip),
            stores: stores.clone(),
            body: body.clone(),
            reach: reach.clone(),
            timed: RefCell::default(),
            without: RefCell::default(),
            hall: RefCell::default(),
            choices: Cell::default(),
            known: Rc::default(),
            vigil: Rc::new(Vigil::begin(test.clone())),
            serial: RefCell::default(),
        }
    }
}

/// The kinds that a node hosts which is equipped so.
pub(crate) fn kinds_of(equip: &Equip) -> Kinds {
    Rc::new(equip(Node::builder()).kinds().collect())
}

/// What is tested, on one thread.
pub(crate) struct Subject {
    equip: Equip,
    kinds: Kinds,
    stores: Arc<[String]>,
    body: Body,
    reach: Reach,
    /// Who waits for moments beside answers, once somebody has looked.
    timed: RefCell<Option<Rc<BTreeSet<u64>>>>,
    /// Clients that are left out.
    without: RefCell<BTreeSet<u32>>,
    /// Where the schedules are run, once there was one.
    hall: RefCell<Option<Hall>>,
    /// Choices of the last schedule: the next one has about as many.
    choices: Cell<usize>,
    /// Turns whose names have been told.
    known: Rc<RefCell<Numbers>>,
    /// Who sees that steps end.
    vigil: Rc<Vigil>,
    /// What clients could be told one after the other; known once somebody has asked.
    serial: RefCell<BTreeMap<Program, Rc<Serial>>>,
}

/// What clients do: what the test chooses first for its crowds, and who is left out.
type Program = (Option<usize>, BTreeSet<u32>);

/// What became of a schedule.
pub(crate) struct Ran {
    /// What was violated.
    pub(crate) violated: Option<String>,
    /// Whether it was cut off.
    pub(crate) is_cut: bool,
    /// Whether it was to be judged by calls behind its end.
    pub(crate) has_finally: bool,
    /// Whether who chooses has given it up, as nothing new would come of it.
    pub(crate) is_given_up: bool,
    /// Whether something went wrong that may.
    pub(crate) has_faults: bool,
    pub(crate) steps: usize,
    /// Tells schedules apart that differ in the order of steps that have to do with each other.
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
    /// Whether schedules of one trace may be judged otherwise, so that it does not do to have run each trace.
    pub(crate) judges_order: bool,
    /// What the test has chosen first for its crowds.
    pub(crate) program: Option<usize>,
    /// The turns that began, in their order, and what those are called that nobody has heard of.
    pub(crate) began: Vec<Began>,
    pub(crate) names: Vec<(u64, String)>,
    /// Clients that were left out.
    pub(crate) without: BTreeSet<u32>,
    /// Who was seen to wait for moments beside answers, where that was looked for.
    pub(crate) probed: BTreeSet<u64>,
    /// What was to come before its time, and could not come at all.
    pub(crate) unfit: Vec<Deviation>,
}

/// A step, for people.
#[derive(Clone, Default, Debug)]
pub(crate) struct Told {
    pub(crate) name: String,
    /// The one that would have come; this and what follows only where all is told.
    pub(crate) instead_of: Option<String>,
    pub(crate) number: u64,
    /// What it is about, where its name does not say it.
    pub(crate) about: String,
    /// What the test has said in it.
    pub(crate) notes: Vec<String>,
    /// All that could have come.
    pub(crate) others: Vec<String>,
    /// What the actors were after it.
    pub(crate) states: States,
}

/// How much is kept of what happens in a schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tell {
    /// No more than what judges ask for.
    Nothing,
    /// The steps, and what was sent and answered in them.
    Steps,
    /// What the actors are after each step, too.
    All,
}

/// Who chooses.
pub(crate) enum Plan {
    /// A strategy.
    Chooser(Rc<RefCell<Box<dyn Chooser>>>),
    /// Choices that were made before, by the places of what was chosen.
    Picks(Vec<u32>),
    /// The default order, but for these.
    Deviations(Deviations),
    /// The default order, in which it is seen who waits for moments.
    Probe,
    /// The steps with these numbers, in this order, as far as they can come.
    Order(Vec<u64>),
    /// One call of a client after the other.
    Serial(Rc<RefCell<Path>>),
}

impl Plan {
    /// The deviations that are left.
    fn take_rest(&mut self) -> Vec<Deviation> {
        match self {
            Plan::Deviations(Deviations(rest)) => std::mem::take(rest),
            _ => Vec::new(),
        }
    }
}

impl Subject {
    /// Leaves clients out from here on, and no others.
    pub(crate) fn leave_out(&self, clients: BTreeSet<u32>) {
        self.without.replace(clients);
    }

    /// The clients that are left out.
    pub(crate) fn without(&self) -> BTreeSet<u32> {
        self.without.borrow().clone()
    }

    /// Runs one schedule, and judges it.
    pub(crate) fn run(&self, plan: Plan, tell: Tell) -> Ran {
        let mut ran = self.play(plan, tell);
        if ran.is_linearizable && ran.violated.is_none() && !ran.is_cut && !ran.is_given_up && !ran.has_faults {
            let calls = history::calls(&ran.events);
            if !self.serial(ran.program).explains(&calls) {
                ran.violated = Some(NOT_LINEARIZABLE.to_owned());
            }
        }
        ran
    }

    /// What clients can be told one after the other, if the test first chooses `program`.
    fn serial(&self, program: Option<usize>) -> Rc<Serial> {
        let of = (program, self.without());
        let known = self.serial.borrow().get(&of).cloned();
        known.unwrap_or_else(|| {
            let serial = Rc::new(self.run_serially(program));
            self.serial.borrow_mut().insert(of, serial.clone());
            serial
        })
    }

    /// Runs the clients' calls one at a time, in all orders.
    fn run_serially(&self, program: Option<usize>) -> Serial {
        let path = Rc::new(RefCell::new(Path::of(program)));
        let mut serial = Serial::default();
        loop {
            let ran = self.play(Plan::Serial(path.clone()), Tell::Nothing);
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

    fn play(&self, plan: Plan, tell: Tell) -> Ran {
        if self.timed.borrow().is_none() {
            let probed =
                if self.reach.in_time { BTreeSet::new() } else { self.perform(Plan::Probe, Tell::Nothing).probed };
            self.timed.replace(Some(Rc::new(probed)));
        }
        self.perform(plan, tell)
    }

    fn perform(&self, plan: Plan, tell: Tell) -> Ran {
        let hall = self.hall.take();
        let (ran, hall) = quietly(|| {
            let hall = hall.unwrap_or_else(|| Hall::open(self.equip.clone(), self.stores.clone()));
            let ran = self.run_in(&hall, plan, tell);
            (ran.0, hall.renewed(ran.1))
        });
        self.hall.replace(hall);
        ran
    }

    /// Lets the next schedule have a new node.
    #[cfg(test)]
    pub(crate) fn renew(&self) {
        self.hall.take();
    }

    fn run_in(&self, hall: &Hall, plan: Plan, tell: Tell) -> (Ran, Driver) {
        let picks = Picks {
            plan,
            trace: Trace::with_room(ACTORS),
            has_faults: false,
            made: Vec::with_capacity(self.choices.get()),
            open: Vec::with_capacity(self.choices.get()),
            tell,
            told: Vec::new(),
            began: Vec::with_capacity(self.choices.get()),
            names: Vec::new(),
            known: self.known.clone(),
            vigil: self.vigil.clone(),
        };
        let picks = Rc::new(RefCell::new(picks));
        let world = World::new(hall.node(), self.kinds.clone(), picks.clone());
        let of_actors = world.clone();
        ask_maybe(Some(Rc::new(move |what: &str| of_actors.maybe(what))));
        let mut driver = Driver::new(hall, self.vigil.clone(), world.clone(), self.reach.clone(), self.without());
        if let Some(timed) = &*self.timed.borrow() {
            driver.know_timed(timed.clone());
        }
        let body = (self.body)(world.clone());
        let ran = hall.run(run(driver, world, body, tell, picks));
        self.choices.set(ran.0.picks.len());
        ask_maybe(None);
        ran
    }
}

async fn run(
    mut driver: Driver,
    world: World,
    body: LocalFuture,
    tell: Tell,
    picks: Rc<RefCell<Picks>>,
) -> (Ran, Driver) {
    match picks.borrow().plan {
        Plan::Serial(_) => driver.be_serial(),
        Plan::Probe => driver.probe(),
        _ => {}
    }
    let ended = match driver.set_up(body).await {
        Ok(()) => {
            let mut pick = |names: &Names, enabled: &[Step], default| picks.borrow_mut().pick(names, enabled, default);
            driver.explore(&mut pick, tell).await
        }
        Err(violated) => Err(format!("before any client ran: {violated}")),
    };
    let has_finally = world.has_finally();
    let claims = world.take_all();
    let sometimes = claims.iter().zip(&driver.seen).filter(|(claim, _)| claim.when == When::Sometimes);
    let sometimes = sometimes.map(|(claim, seen)| (claim.name.clone(), *seen)).collect();
    let mut picks = picks.borrow_mut();
    let mut told = std::mem::take(&mut picks.told);
    for (told, states) in told.iter_mut().zip(driver.judges.take_states()) {
        told.states = states;
    }
    let is_given_up = ended == Ok(Ended::GivenUp);
    if let Plan::Chooser(chooser) = &picks.plan {
        chooser.borrow_mut().end(&driver.blocked());
    }
    let ran = Ran {
        is_cut: ended == Ok(Ended::Cut),
        has_finally,
        is_given_up,
        has_faults: picks.has_faults,
        violated: ended.err(),
        steps: driver.steps,
        trace: picks.trace.hash(),
        sometimes,
        told,
        picks: std::mem::take(&mut picks.made),
        open: std::mem::take(&mut picks.open),
        events: driver.judges.take_events(),
        is_linearizable: world.is_linearizable(),
        judges_order: world.judges_order(),
        program: world.program(),
        began: std::mem::take(&mut picks.began),
        names: std::mem::take(&mut picks.names),
        without: driver.without().clone(),
        probed: driver.take_probed(),
        unfit: picks.plan.take_rest(),
    };
    drop(picks);
    (ran, driver)
}

/// The choices of one schedule.
struct Picks {
    plan: Plan,
    trace: Trace,
    has_faults: bool,
    made: Vec<u32>,
    open: Vec<(u32, u32)>,
    tell: Tell,
    told: Vec<Told>,
    began: Vec<Began>,
    names: Vec<(u64, String)>,
    /// Turns whose names are known.
    known: Rc<RefCell<Numbers>>,
    vigil: Rc<Vigil>,
}

impl Course for Rc<RefCell<Picks>> {
    fn choose(&self, options: usize, about: &str) -> usize {
        self.borrow_mut().choose(options, about)
    }

    fn note(&self, text: &str) {
        if let Some(told) = self.borrow_mut().told.last_mut() {
            told.notes.push(text.to_owned());
        }
    }
}

impl Picks {
    /// A choice of the test's own: of whether something happens, if it says what that is about.
    fn choose(&mut self, options: usize, about: &str) -> usize {
        let made = self.made.len() as u64;
        let option =
            |at| Step { number: mix(made, OWN | at), kind: Kind::Choice, at, by: OWN, born: 0, read: false, queue: 0 };
        let options: Vec<Step> = (0..options as u64).map(option).collect();
        let chosen = self.pick(&|option| format!("choice {}", option.at), &options, 0).unwrap_or(0);
        if let Some(told) = self.told.last_mut().filter(|_| !about.is_empty()) {
            told.about = format!("{about}: {}", if chosen == 1 { "yes" } else { "no" });
        }
        chosen
    }

    /// Which step comes; `None` if none is to come any more.
    fn pick(&mut self, names: &Names, enabled: &[Step], default: usize) -> Option<usize> {
        let at = self.made.len() + 1;
        let chosen = match &mut self.plan {
            Plan::Chooser(chooser) => chooser.borrow_mut().pick(enabled, default)?,
            Plan::Serial(path) => path.borrow_mut().pick(enabled, default),
            Plan::Picks(picks) => picks.get(at - 1).map_or(default, |pick| *pick as usize),
            Plan::Probe => default,
            Plan::Order(rest) => {
                let place = |number: &u64| enabled.iter().position(|step| step.number == *number);
                match rest.iter().enumerate().find_map(|(at, number)| Some((at, place(number)?))) {
                    Some((at, found)) => {
                        rest.remove(at);
                        found
                    }
                    None => default,
                }
            }
            Plan::Deviations(Deviations(rest)) => match rest.first() {
                Some(Deviation { at: from, name: wanted }) if *from <= at => {
                    let all = names_of(names, enabled);
                    match all.iter().position(|name| name == wanted) {
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
        self.trace.add(&enabled[chosen]);
        self.has_faults |= matches!(enabled[chosen].kind, Kind::Fault(_));
        self.made.push(chosen as u32);
        self.open.push((default as u32, enabled.len() as u32));
        if enabled[chosen].kind == Kind::Start {
            let Step { at, number, .. } = enabled[chosen];
            self.began.push(Began { at, number });
            // Other runs are not counted.
            let is_counted = matches!(self.plan, Plan::Chooser(_));
            if is_counted && self.known.borrow_mut().insert(number) {
                let name = names(&enabled[chosen]);
                self.vigil.know(at, || name.clone());
                self.names.push((number, name));
            } else if !is_counted {
                self.vigil.know(at, || names(&enabled[chosen]));
            }
        }
        let number = enabled[chosen].number;
        match self.tell {
            Tell::Nothing => {}
            Tell::Steps => self.told.push(Told { name: names(&enabled[chosen]), number, ..Told::default() }),
            Tell::All => {
                let all = names_of(names, enabled);
                let instead_of = (chosen != default).then(|| all[default].clone());
                let name = all[chosen].clone();
                self.told.push(Told { name, instead_of, number, others: all, ..Told::default() });
            }
        }
        Some(chosen)
    }
}

/// What steps are called that can come at once: repeated names have numbers.
fn names_of(name: &Names, enabled: &[Step]) -> Vec<String> {
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
/// Actors and clients of a schedule, about.
const ACTORS: usize = 16;
/// Tells choices of a test's own from steps.
const OWN: u64 = 7 << 61;

#[cfg(test)]
mod tests;
