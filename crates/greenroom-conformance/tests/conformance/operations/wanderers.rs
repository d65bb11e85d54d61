//! Registers that go from node to node all the time while everybody calls them, and what a nemesis makes of it.
//!
//! A register's answers carry its *line*: the activation in which its value was last known to begin. The line goes along
//! when it moves. Within a line nothing may be lost, run twice or interleave, wherever it is; a new line begins where
//! the value was lost, or may have been.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::rc::Rc;
use std::time::Duration;

use greenroom::prelude::*;
use greenroom_protocols::checks::Checks;
use greenroom_sim::history::registers::{Asked, Keeps, Operation, Stamped, Told, check};
use greenroom_sim::{Exclusive, Fault, Faults, Nemesis, Sim, expect_violation, seeds};

use crate::cluster::{Cluster, sim};

/// What a register carries: its line, the node that it is leaving, how many values it took, and the last one.
type Carried = (u64, String, u64, u64);
/// Line, count and value.
pub(crate) type Answer = (u64, u64, u64);

pub(crate) struct Wanderer {
    carried: Carried,
    /// Whether it begins anew where it is taken back.
    forgets: bool,
    watch: Exclusive,
}

impl Wanderer {
    pub(crate) fn new(forgets: bool, watch: Exclusive) -> Self {
        Self { carried: Carried::default(), forgets, watch }
    }
}

impl Actor for Wanderer {}

#[actor(idle = "1h")]
impl Wanderer {
    async fn activated(&mut self, cx: &Cx) {
        let (line, left, ..) = &self.carried;
        // The value that is taken back may be an old one: the target may have had it, and died.
        if *line == 0 || (self.forgets && left.as_str() == cx.node_name()) {
            self.carried = (cx.epoch(), String::new(), 0, 0);
        }
        self.carried.1.clear();
    }

    async fn migrating(&mut self, cx: &Cx) -> Carried {
        self.carried.1 = cx.node_name().to_owned();
        self.carried.clone()
    }

    async fn migrated(&mut self, carried: Carried) {
        self.carried = carried;
    }

    /// Takes `value` and gives the one before; in between, others would be seen.
    pub async fn swap(&mut self, cx: &Cx, value: u64) -> Answer {
        let _inside = self.watch.enter(&cx.id().to_string(), cx.node_name(), cx.epoch());
        let (line, _, count, before) = self.carried.clone();
        tokio::time::sleep(Duration::from_millis(value % 10)).await;
        (self.carried.2, self.carried.3) = (count + 1, value);
        (line, count + 1, before)
    }

    pub async fn read(&self) -> Answer {
        let (line, _, count, value) = self.carried;
        (line, count, value)
    }

    pub async fn go(&self, cx: &Cx, node: String) -> bool {
        cx.migrate_to(&node).is_ok()
    }
}

/// What everybody asked of each register and was told, and how often one was sent away.
pub(crate) struct Histories {
    sim: Sim,
    all: RefCell<BTreeMap<u64, Vec<Operation>>>,
    value: Cell<u64>,
    sent: Cell<u64>,
    closed: Cell<bool>,
}

impl Histories {
    pub(crate) fn new(sim: &Sim) -> Rc<Self> {
        let (all, value, sent, closed) = Default::default();
        Rc::new(Self { sim: sim.clone(), all, value, sent, closed })
    }

    /// Calls all registers from the node called `name`, and sends them away, until it is closed.
    fn call_from(self: &Rc<Self>, cluster: &Cluster, name: &'static str, names: &'static [&'static str]) {
        let (this, cluster, mut random) = (self.clone(), cluster.clone(), self.sim.random());
        self.sim.spawn(async move {
            while !this.is_closed() {
                tokio::time::sleep(random.within(&(Duration::from_millis(5)..Duration::from_millis(100)))).await;
                let key = random.index(REGISTERS) as u64;
                let Some(node) = cluster.node(name) else { continue };
                let wanderer = WandererRef::of(&node, key);
                match random.index(20) {
                    0..=3 => {
                        let to = names[random.index(names.len())].to_owned();
                        if let Ok(true) = wanderer.go(to).by(PATIENCE).await {
                            this.sent.set(this.sent.get() + 1);
                        }
                    }
                    4..=7 => {
                        let place = this.begin(key, name, Asked::Read);
                        this.end(key, place, told(wanderer.read().by(PATIENCE).await));
                    }
                    _ => {
                        let value = this.next_value();
                        let place = this.begin(key, name, Asked::Swap(value));
                        this.end(key, place, told(wanderer.swap(value).by(PATIENCE).await));
                    }
                }
            }
        });
    }

    /// A value that nobody else writes.
    pub(crate) fn next_value(&self) -> u64 {
        self.value.set(self.value.get() + 1);
        self.value.get()
    }

    pub(crate) fn close(&self) {
        self.closed.set(true);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.get()
    }

    /// Enters an operation, in doubt until its caller is told: one that is gone with its node hears no more.
    pub(crate) fn begin(&self, key: u64, caller: &str, asked: Asked) -> usize {
        let begun = self.sim.now();
        let mut all = self.all.borrow_mut();
        let history = all.entry(key).or_default();
        history.push(Operation { caller: caller.to_owned(), begun, ended: begun, asked, told: Told::Doubt });
        history.len() - 1
    }

    pub(crate) fn end(&self, key: u64, place: usize, told: Told) {
        let mut all = self.all.borrow_mut();
        let operation = &mut all.get_mut(&key).expect("it was begun")[place];
        (operation.ended, operation.told) = (self.sim.now(), told);
    }

    /// Checks every history; how many calls were answered.
    pub(crate) fn check(&self, keeps: Keeps) -> usize {
        let mut answered = 0;
        for (key, history) in self.all.borrow().iter() {
            check(history, keeps).unwrap_or_else(|offence| {
                let shown = offence.operations.iter().map(|place| format!("\n  {}", history[*place]));
                panic!("register {key}: {}:{}", offence.what, shown.collect::<String>())
            });
            answered += history.iter().filter(|operation| matches!(operation.told, Told::Answer(_))).count();
        }
        answered
    }
}

pub(crate) fn told<E: Debug>(answer: Result<Answer, CallError<E>>) -> Told {
    match answer {
        Ok((epoch, count, value)) => Told::Answer(Stamped { epoch, count, value }),
        Err(CallError::Unknown(_)) => Told::Doubt,
        Err(_) => Told::Not,
    }
}

/// Nodes `names` host wanderers that everybody calls and sends away, while the nemesis does as it is `armed`.
fn scenario(
    (seed, faults): (u64, Faults),
    (names, checks): (&'static [&'static str], Checks),
    keeps: Keeps,
    armed: fn(Nemesis, &Cluster) -> Nemesis,
) {
    sim(seed, faults).deadline(Duration::from_secs(600)).run(|sim: Sim| async move {
        let (watch, forgets) = (Exclusive::fenced(&sim), keeps == Keeps::Nothing);
        let cluster = Cluster::new(&sim, move |builder, _| {
            let watch = watch.clone();
            builder
                .register_with(move |_| Wanderer::new(forgets, watch.clone()))
                .configure(|config| config.checks = checks)
        });
        cluster.start_all(names).await;
        let histories = Histories::new(&sim);
        for name in names {
            histories.call_from(&cluster, name, names);
        }
        armed(Nemesis::new(&sim, names), &cluster).run(Duration::from_secs(40)).await;
        tokio::time::sleep(Duration::from_secs(15)).await;
        histories.close();
        tokio::time::sleep(Duration::from_secs(5)).await;
        if keeps == Keeps::Everything {
            assert!(
                names.iter().all(|name| cluster.node(name).is_some_and(|node| !node.is_stopped())),
                "a node has died"
            );
        }
        let answered = histories.check(keeps);
        assert!(answered > 100, "only {answered} calls were answered");
        assert!(histories.sent.get() > 20, "only {} moves were asked for", histories.sent.get());
    });
}

/// All that a nemesis can do, with nodes that are started again.
fn everything(nemesis: Nemesis, cluster: &Cluster) -> Nemesis {
    cluster.supervise();
    let restarting = cluster.clone();
    nemesis
        .restart(move |name| restarting.restart(name))
        .store(&cluster.store)
        .lease(Duration::from_secs(4))
        .lasting(Duration::from_millis(500)..Duration::from_secs(8))
        .gap(Duration::from_millis(200)..Duration::from_secs(4))
}

/// Connections break all the time, and no node dies of it.
fn resets(nemesis: Nemesis, _: &Cluster) -> Nemesis {
    nemesis.only(&[Fault::Reset]).gap(Duration::from_millis(500)..Duration::from_secs(3))
}

#[test]
fn while_no_node_dies_an_actor_that_moves_loses_nothing_and_runs_nothing_twice() {
    let name = "while_no_node_dies_an_actor_that_moves_loses_nothing_and_runs_nothing_twice";
    let nodes = (THREE, Checks::default());
    seeds(name, 50, |seed| scenario((seed, Faults::none()), nodes, Keeps::Everything, resets));
}

#[test]
fn under_chaos_an_actor_that_moves_is_never_two_and_loses_its_state_only_as_a_whole() {
    let name = "under_chaos_an_actor_that_moves_is_never_two_and_loses_its_state_only_as_a_whole";
    let nodes = (FIVE, Checks::default());
    seeds(name, 40, |seed| scenario((seed, Faults::rough()), nodes, Keeps::Nothing, everything));
}

#[test]
fn if_a_move_took_an_actor_from_any_activation_its_history_would_offend() {
    let checks = Checks { exact_move: false, ..Checks::default() };
    let name = "if_a_move_took_an_actor_from_any_activation_its_history_would_offend";
    expect_violation(name, 300, |seed| scenario((seed, Faults::rough()), (FIVE, checks), Keeps::Nothing, everything));
}

const THREE: &[&str] = &["a", "b", "c"];
const FIVE: &[&str] = &["a", "b", "c", "d", "e"];
const REGISTERS: usize = 3;
const PATIENCE: Duration = Duration::from_secs(2);
