//! What goes wrong on a stage, as somebody chooses: nodes that are gone, messages that are lost, deadlines that pass.
//!
//! The actors of a stage sit on one shard; for faults they sit on [`Labels`], each of which stands for a node.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use greenroom_protocols::delivery::Delivery;

use super::labels::{Labels, label};
use super::{Answer, Kind, Party, Performed, Stage, Step};
use super::{Asked, Happened, Held, Operation, Outcome, Place, Shard, What, mix};
use crate::actor::error::{Doubt, Failure};
use crate::actor::interface::Travels;
use crate::actor::key::ActorId;
use crate::here::built_in::is_built_in;
use crate::pids::key::is_reserved;
use crate::shard::Slot;
use crate::shard::calls::{CallSlot, Completion};

/// What can go wrong.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// A node is gone, with the activations on it and what is under way to and from it.
    Crash,
    /// A message between two nodes is lost, or its answer.
    Lose,
    /// A call's deadline passes.
    Late,
    /// An activation ends as if nobody had used it for its idle time.
    Idle,
    /// A store does not do what it is asked, or does not say so.
    Store,
    /// A node sleeps beyond its lease: its actors begin anew elsewhere, and what it had sent is still under way.
    Pause,
    /// An actor with a state goes to another node, and what was sent to it before may come after what is sent then.
    Move,
    /// What is promised at least once comes twice.
    Repeat,
    /// A node's wall clock goes ahead by a minute, and so what is due by it comes sooner.
    Skew,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Crash => "crash",
            Fault::Lose => "lose",
            Fault::Late => "late",
            Fault::Idle => "idle",
            Fault::Store => "store",
            Fault::Pause => "pause",
            Fault::Move => "move",
            Fault::Repeat => "repeat",
            Fault::Skew => "skew",
        })
    }
}

/// What a fault hits.
enum Hit {
    /// A message or an answer that is under way, by its number.
    Held(u64),
    /// A call whose turn has begun.
    Running(CallSlot),
    Node(u64),
    Activation(Slot),
    /// A tick that has come, by its number.
    Tick(u64),
    /// An operation on a store, by its number, and how it ends.
    Operation(u64, Outcome),
}

impl Stage {
    /// Lets actors sit on so many nodes: which one sits on which is another for each `placement`.
    pub fn place(&self, nodes: u64, placement: u64) {
        *self.shard.rehearsal.labels.borrow_mut() = Labels::new(nodes, placement);
    }

    /// Adds what of `kinds` can go wrong next to `out`.
    pub fn faults(&self, kinds: &[Fault], out: &mut Vec<Step>) {
        self.each_hit(kinds, &mut |step, _| out.push(step));
    }

    fn each_hit(&self, kinds: &[Fault], found: &mut dyn FnMut(Step, Hit)) {
        let rehearsal = &self.shard.rehearsal;
        let (held, labels) = (rehearsal.held.borrow(), rehearsal.labels.borrow());
        for kind in kinds {
            let mut hits = |number: u64, at: u64, hit: Hit| found(step(*kind, number, at), hit);
            match kind {
                Fault::Crash | Fault::Pause => {
                    for node in 0..labels.nodes {
                        if let Some(last) = labels.last_on(node).filter(|_| self.is_inhabited(&labels, node)) {
                            hits(mix(last, node), node, Hit::Node(node));
                        }
                    }
                }
                Fault::Skew => {
                    let timed = self.shard.player().map(|player| player.timed()).unwrap_or_default();
                    let nodes: BTreeSet<u64> = timed.into_iter().map(|actor| labels.of(actor)).collect();
                    for node in nodes {
                        hits(mix(labels.last_on(node).unwrap_or(0), node), node, Hit::Node(node));
                    }
                }
                Fault::Lose => held
                    .iter()
                    .filter(|held| held.may_be_lost(&labels))
                    .for_each(|held| hits(held.number, held.at, Hit::Held(held.number))),
                Fault::Late => {
                    let calls = self.shard.calls.borrow();
                    let asked = rehearsal.asked.borrow();
                    for asked in asked.iter().filter(|asked| asked.is_bounded && calls.is_open(asked.call)) {
                        let waits = held.iter().any(|held| held.number == asked.message);
                        let hit = if waits { Hit::Held(asked.message) } else { Hit::Running(asked.call) };
                        hits(mix(asked.message, u64::from(waits)), asked.by.hash(), hit);
                    }
                }
                Fault::Idle => {
                    for Place { actor, slot, .. } in rehearsal.places.borrow().iter() {
                        if self.is_quiet(*slot) {
                            hits(mix(labels.last_at(*actor), *actor), *actor, Hit::Activation(*slot));
                        }
                    }
                }
                Fault::Move => {
                    for Place { actor, slot, .. } in rehearsal.places.borrow().iter() {
                        if labels.nodes > 1 && self.is_quiet(*slot) && self.may_move(*slot) {
                            hits(mix(labels.last_at(*actor), *actor), *actor, Hit::Activation(*slot));
                        }
                    }
                }
                Fault::Repeat => {
                    held.iter()
                        .filter(|held| held.may_come_twice() || self.shard.acknowledges(held))
                        .for_each(|held| hits(held.number, held.at, Hit::Held(held.number)));
                    for (tick, actor) in self.shard.ticks_to_repeat() {
                        hits(tick, actor, Hit::Tick(tick));
                    }
                }
                Fault::Store => {
                    for Held { number, at, what, .. } in held.iter() {
                        let What::Operation(Operation { by: Party::Actor(_), is_write, .. }) = what else { continue };
                        for outcome in Outcome::wrong(*is_write) {
                            hits(mix(*number, *outcome as u64), *at, Hit::Operation(*number, *outcome));
                        }
                    }
                }
            }
        }
    }

    /// What a fault is called that can come.
    pub(super) fn name_of_fault(&self, kind: Fault, step: &Step) -> String {
        let mut name = kind.to_string();
        let rehearsal = &self.shard.rehearsal;
        self.each_hit(&[kind], &mut |other, hit| {
            if other.number == step.number {
                let held = |number| {
                    let held = rehearsal.held.borrow();
                    held.iter().find(|held| held.number == number).map(|held| held.what.to_string())
                };
                let hits = match hit {
                    Hit::Held(number) => held(number),
                    Hit::Operation(number, outcome) => held(number).map(|what| format!("{what}: {}", outcome.told())),
                    Hit::Running(call) => {
                        let asked = rehearsal.asked.borrow();
                        let asked = asked.iter().find(|asked| asked.call == call);
                        asked.map(|Asked { by, target, method, .. }| format!("{by}<{target}.{method}"))
                    }
                    Hit::Tick(number) => self.shard.name_of_tick(number),
                    Hit::Node(node) => Some(label(node)),
                    Hit::Activation(slot) => self.shard.activation(slot).map(|one| one.id().to_string()),
                };
                name = format!("{kind} {}", hits.unwrap_or_default());
            }
        });
        name
    }

    /// Lets it go wrong.
    pub(super) fn go_wrong(&self, kind: Fault, step: &Step) -> Performed {
        let shard = &*self.shard;
        shard.rehearsal.note(|| {
            let is_of_node = matches!(kind, Fault::Crash | Fault::Pause | Fault::Skew);
            let actors = if is_of_node { self.names_on(step.at) } else { Vec::new() };
            Happened::Fault { what: self.name_of_fault(kind, step), actors }
        });
        let mut hits = None;
        self.each_hit(&[kind], &mut |other, hit| {
            if other.number == step.number {
                hits = Some(hit);
            }
        });
        match hits {
            Some(Hit::Held(number)) if kind == Fault::Repeat && shard.repeat(number) => Performed::Whole,
            Some(Hit::Held(number)) => {
                let failure = match kind {
                    Fault::Late => shard.expired(Default::default()).into(),
                    _ => disconnected("another node"),
                };
                shard.lose(number, failure);
                Performed::Whole
            }
            Some(Hit::Running(call)) => shard.let_expire(call),
            Some(Hit::Tick(number)) => {
                shard.repeat_tick(number);
                Performed::Whole
            }
            Some(Hit::Operation(number, outcome)) => {
                if let Some(What::Operation(operation)) = shard.rehearsal.take(number) {
                    shard.operate(operation, outcome);
                }
                Performed::Whole
            }
            Some(Hit::Node(node)) if kind == Fault::Skew => {
                shard.go_ahead(node);
                Performed::Whole
            }
            Some(Hit::Node(node)) => {
                shard.lose_node(node, kind == Fault::Pause);
                Performed::Whole
            }
            Some(Hit::Activation(slot)) => {
                if let Some(activation) = shard.activation(slot) {
                    if kind == Fault::Move {
                        shard.let_overtake(|held| held.at == activation.id().stable_hash());
                        shard.rehearsal.labels.borrow_mut().let_move(activation.id().stable_hash());
                    }
                    activation.check_idle(shard, shard.now() + LONG);
                }
                Performed::Whole
            }
            None => Performed::Whole,
        }
    }

    /// Who sits on a node, by name.
    fn names_on(&self, node: u64) -> Vec<String> {
        let labels = self.shard.rehearsal.labels.borrow();
        let activations = self.shard.activations.borrow();
        let there = activations.iter().map(|one| one.id());
        let there = there.filter(|id| may_crash(id) && labels.of(id.stable_hash()) == node);
        let mut names: Vec<String> = there.map(ToString::to_string).collect();
        names.sort_unstable();
        names
    }

    fn is_inhabited(&self, labels: &Labels, node: u64) -> bool {
        let places = self.shard.rehearsal.places.borrow();
        places.iter().any(|place| place.may_crash && labels.of(place.actor) == node)
    }

    /// Whether an activation may go to another node: one that has nothing but what is in a store can.
    fn may_move(&self, slot: Slot) -> bool {
        let kinds = self.shard.port.node.kinds();
        let found = self.shard.activation(slot).and_then(|one| kinds.find(one.id().kind));
        found.is_some_and(|kind| kind.travels() == Travels::ByStore)
    }

    fn is_quiet(&self, slot: Slot) -> bool {
        let found = self.shard.activation(slot);
        found.is_some_and(|one| may_crash(one.id()) && one.state() == "ready" && !one.busy() && one.waiting() == 0)
    }
}

impl Shard {
    /// Loses what is under way; a call ends with `failure`.
    fn lose(&self, number: u64, failure: Failure) {
        match self.rehearsal.take(number) {
            Some(What::Answer { call, message, to, from, method, .. }) => {
                let completion = Completion::Failed(Box::new(failure));
                self.rehearsal.note(|| Happened::Answered { message, answer: Answer::from(&completion) });
                let touches = (to.hash(), from.stable_hash(), 0);
                self.rehearsal.hold(number, touches, What::Answer { call, completion, message, to, from, method });
            }
            Some(lost) => {
                // Its reply says how the call ends as it is dropped.
                self.rehearsal.ends_as.replace(Some(failure));
                drop(lost);
                self.rehearsal.ends_as.take();
            }
            None => {}
        }
    }

    /// Lets the caller's patience end, while the turn goes on.
    fn let_expire(&self, call: CallSlot) -> Performed {
        let asked = {
            let mut asked = self.rehearsal.asked.borrow_mut();
            asked.iter().position(|asked| asked.call == call).map(|at| asked.swap_remove(at))
        };
        let Some(Asked { message, by, .. }) = asked else { return Performed::Whole };
        let completion = Completion::Failed(Box::new(Doubt::TimedOut(Box::default()).into()));
        self.rehearsal.note(|| Happened::Answered { message, answer: Answer::from(&completion) });
        self.rehearsal.note(|| Happened::Heard { message });
        let before = self.ready.borrow().len();
        self.rehearsal.passes.set(true);
        self.complete(call, completion);
        self.rehearsal.passes.set(false);
        self.resume_since(before);
        match by {
            Party::Client(number) => Performed::Client(number),
            _ => Performed::Whole,
        }
    }

    /// Lets the wall clock of a node go ahead.
    fn go_ahead(&self, node: u64) {
        let is_there = |actor: u64| self.rehearsal.labels.borrow().of(actor) == node;
        if let Some(player) = self.player() {
            player.went_ahead(self, &is_there, AHEAD);
        }
    }

    /// Lets what is under way be no queue with what is sent from here on.
    fn let_overtake(&self, is_meant: impl Fn(&Held) -> bool) {
        let step = self.rehearsal.step.get();
        let mut held = self.rehearsal.held.borrow_mut();
        for held in held.iter_mut().filter(|held| held.queue != 0 && is_meant(held)) {
            held.queue = mix(held.queue, step) | 1;
        }
    }

    /// Lets a node be gone, and its actors begin anew elsewhere. What is under way to it is lost; what it had sent is, too, unless it `sleeps`.
    fn lose_node(&self, node: u64, sleeps: bool) {
        let rehearsal = &self.rehearsal;
        let failure = disconnected(&label(node));
        let is_on = |party: &Party| match party {
            Party::Actor(id) => may_crash(id) && rehearsal.labels.borrow().of(id.stable_hash()) == node,
            _ => false,
        };
        let is_there = |id: &ActorId| is_on(&Party::Actor(id.clone()));
        // Nobody there waits for anything any more.
        rehearsal.asked.borrow_mut().retain(|asked| !is_on(&asked.by));
        let lost = |held: &Held| match &held.what {
            What::Message { target, from, .. } => is_there(&target.id) || (is_on(from) && !sleeps),
            What::Answer { to, .. } => is_on(to),
            What::Operation(_) | What::Deed(_) => false,
        };
        let (gone, left): (Vec<_>, Vec<_>) = rehearsal.held.take().into_iter().partition(lost);
        rehearsal.held.replace(left);
        self.let_overtake(|held| matches!(&held.what, What::Message { from, .. } if is_on(from)));
        rehearsal.ends_as.replace(Some(failure.clone()));
        drop(gone);
        let activations: Vec<_> = self.activations.borrow().iter().filter(|one| is_there(one.id())).cloned().collect();
        for activation in activations {
            self.cut_turns(&activation);
            activation.vanish(self);
        }
        // What nobody waits for any more was not done.
        rehearsal.held.borrow_mut().retain(|held| !matches!(&held.what, What::Operation(one) if is_on(&one.by)));
        if let Some(player) = self.player() {
            player.crashed(self, &is_there);
        }
        rehearsal.ends_as.take();
        if sleeps {
            return;
        }
        let from_there = |held: &&Held| matches!(&held.what, What::Answer { from, .. } if is_there(from));
        let answers: Vec<u64> = rehearsal.held.borrow().iter().filter(from_there).map(|held| held.number).collect();
        answers.into_iter().for_each(|number| self.lose(number, failure.clone()));
    }
}

impl Held {
    fn may_be_lost(&self, labels: &Labels) -> bool {
        match &self.what {
            What::Message { target, from, .. } => labels.are_apart(from, &target.id),
            What::Answer { to, from, completion, .. } => {
                let is_lost =
                    matches!(completion, Completion::Failed(failure) if matches!(**failure, Failure::Unknown(_)));
                !is_lost && labels.are_apart(to, from)
            }
            What::Deed(deed) => deed.delivery == Delivery::BestEffort && labels.are_apart(&deed.by, &deed.at),
            What::Operation(_) => false,
        }
    }

    fn may_come_twice(&self) -> bool {
        matches!(&self.what, What::Deed(deed) if deed.delivery == Delivery::AtLeastOnce)
    }
}

/// Whether it goes with its node: what the library itself has stays, and so do spawned actors, whose names would be gone for ever.
pub(super) fn may_crash(id: &ActorId) -> bool {
    !is_built_in(id.kind.name()) && !is_reserved(&id.key)
}

fn disconnected(node: &str) -> Failure {
    Doubt::Disconnected { node: node.to_owned() }.into()
}

fn step(kind: Fault, number: u64, at: u64) -> Step {
    Step {
        number: mix(number, FAULT | kind as u64),
        kind: Kind::Fault(kind),
        at,
        by: 0,
        born: 0,
        read: false,
        queue: 0,
    }
}

/// Tells faults from what they hit.
const FAULT: u64 = 11 << 60;
/// Longer than any idle time.
const LONG: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
/// How far a node's wall clock goes ahead.
const AHEAD: Duration = Duration::from_secs(60);
