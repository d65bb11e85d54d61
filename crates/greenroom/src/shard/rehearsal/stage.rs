//! A shard, for who chooses what happens on it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use greenroom_world::Timestamp;

use super::step::{Kind, Party, Performed, Step, Waiting};
use super::{Asked, Event, Happened, Held, Look, Operation, Outcome, Shard, What};
use crate::actor::key::ActorId;
use crate::shard::beside;
use crate::shard::turns::Access;

thread_local! {
    static ASKED_FOR: Cell<bool> = const { Cell::new(false) };
    static ON_STAGE: RefCell<Option<Rc<Shard>>> = const { RefCell::new(None) };
}

/// Whether the shard that begins now is to be on a stage.
pub(super) fn is_asked_for() -> bool {
    ASKED_FOR.get()
}

impl Shard {
    /// Lets a [`Stage`] have it, if there is to be one.
    pub(in crate::shard) fn show_on_stage(self: &Rc<Self>) {
        if self.rehearsal.on {
            ON_STAGE.with_borrow_mut(|stage| *stage = Some(self.clone()));
        }
    }
}

/// A shard of this thread, for who chooses what happens on it. Clones are the same.
#[derive(Clone)]
pub struct Stage {
    pub(super) shard: Rc<Shard>,
}

impl Stage {
    /// Lets the next shard that begins on this thread wait for somebody to choose.
    pub fn ask() {
        ASKED_FOR.set(true);
    }

    /// The shard that has begun since.
    pub fn take() -> Option<Self> {
        ASKED_FOR.set(false);
        let shard = ON_STAGE.with_borrow_mut(Option::take)?;
        Some(Self { shard })
    }

    /// Adds what can happen next to `out`, in the order in which it was made.
    pub fn enabled(&self, out: &mut Vec<Step>) {
        self.each(out, true);
    }

    /// Adds the messages to `out` that are the first of their queues, and wait for turns of their actors.
    pub fn blocked(&self, out: &mut Vec<Step>) {
        self.each(out, false);
    }

    /// Adds what can come, or what cannot come as its actor is not free.
    fn each(&self, out: &mut Vec<Step>, can_come: bool) {
        let shard = &*self.shard;
        let held = shard.rehearsal.held.borrow();
        for (place, Held { number, born, at, by, queue, what }) in held.iter().enumerate() {
            let (kind, read, is_free) = match what {
                What::Answer { .. } => (Kind::Answer, false, true),
                What::Operation(_) => (Kind::Store, false, true),
                What::Deed(deed) => (deed.kind, false, deed.kind != Kind::Start || !shard.is_occupied(*at)),
                What::Message { target, access, link, .. } => {
                    (Kind::Start, *access == Access::Read, shard.may_start(target, *access, link))
                }
            };
            let is_behind = || *queue != 0 && held[..place].iter().any(|before| before.queue == *queue);
            if is_free != can_come || is_behind() {
                continue;
            }
            out.push(Step { number: *number, kind, at: *at, by: *by, born: *born, read, queue: *queue });
        }
        let ready = shard.ready.borrow();
        if ready.is_empty() || !can_come {
            return;
        }
        let place = out.len();
        for turn in ready.iter() {
            let (number, at, born) = shard.rehearsal.wake_of(*turn);
            out.push(Step { number, kind: Kind::Wake, at, by: at, born, read: false, queue: 0 });
        }
        // Who is woken first at one moment, the machine's timers say.
        out[place..].sort_unstable_by_key(|step| step.number);
    }

    /// What a step is called.
    pub fn name(&self, step: &Step) -> String {
        if step.kind == Kind::Wake {
            let turns = self.shard.turns.borrow();
            let ready = self.shard.ready.borrow();
            let is_it = |turn: &&super::TurnId| self.shard.rehearsal.wake_of(**turn).0 == step.number;
            let woken = ready.iter().find(is_it).and_then(|turn| turns.find(*turn));
            return woken.map_or_else(
                || "wake".to_owned(),
                |turn| format!("wake {}", turn.activation.name_of(turn.job.method)),
            );
        }
        if let Kind::Fault(kind) = step.kind {
            return self.name_of_fault(kind, step);
        }
        let held = self.shard.rehearsal.held.borrow();
        let found = held.iter().find(|held| held.number == step.number);
        found.map_or_else(|| format!("#{}", step.number), |held| held.what.to_string())
    }

    /// Does it.
    pub fn perform(&self, step: &Step) -> Performed {
        let shard = &*self.shard;
        let rehearsal = &shard.rehearsal;
        rehearsal.step.set(step.number);
        rehearsal.begun.set(0);
        shard.refill_budget();
        shard.enter(|| {
            let before = shard.ready.borrow().len();
            if let Kind::Fault(kind) = step.kind {
                let performed = self.go_wrong(kind, step);
                shard.settle();
                return performed;
            }
            rehearsal.labels.borrow_mut().touch(step.at, step.number);
            let performed = match (step.kind, rehearsal.take(step.number)) {
                (_, Some(What::Message { parcel, target, .. })) => {
                    rehearsal.note(|| Happened::Came { message: step.number });
                    shard.guide(&target);
                    rehearsal.passes.set(true);
                    parcel.deliver(shard);
                    rehearsal.passes.set(false);
                    Performed::Whole
                }
                (_, Some(What::Answer { call, completion, message, to, .. })) => {
                    rehearsal.note(|| Happened::Heard { message });
                    rehearsal.passes.set(true);
                    shard.complete(call, completion);
                    rehearsal.passes.set(false);
                    shard.resume_since(before);
                    match to {
                        Party::Client(number) => Performed::Client(number),
                        _ => Performed::Whole,
                    }
                }
                (_, Some(What::Deed(deed))) => {
                    if deed.kind == Kind::Start {
                        rehearsal.note(|| Happened::Came { message: step.number });
                    }
                    (deed.perform)(shard);
                    Performed::Whole
                }
                (_, Some(What::Operation(operation))) => {
                    shard.operate(operation, Outcome::Done);
                    Performed::Whole
                }
                (Kind::Wake, None) => {
                    let is_it = |turn: &super::TurnId| rehearsal.wake_of(*turn).0 == step.number;
                    let turn = shard.ready.borrow().iter().position(is_it);
                    let turn = turn.and_then(|at| shard.ready.borrow_mut().remove(at));
                    turn.into_iter().for_each(|turn| {
                        // The next wake of the turn is another step.
                        rehearsal.number_by(turn);
                        shard.resume_turn(turn);
                    });
                    Performed::Whole
                }
                _ => Performed::Whole,
            };
            shard.settle();
            performed
        })
    }

    /// Calls `poll` as a client: what it sends is the client's.
    pub fn as_client<R>(&self, number: u32, step: u64, poll: impl FnOnce() -> R) -> R {
        let shard = &*self.shard;
        shard.rehearsal.step.set(step);
        shard.rehearsal.client.set(Some(number));
        let polled = shard.enter(poll);
        shard.rehearsal.client.set(None);
        if !shard.runnable.borrow().is_empty() {
            shard.enter(|| shard.settle());
        }
        polled
    }

    /// Lets the shard know how late it is: time has passed, or may have.
    pub fn look_at_clock(&self) {
        self.shard.now.set(self.shard.port.node.world().now());
        if let Some(player) = self.shard.player() {
            player.pass_time(&self.shard);
        }
    }

    /// Who waits for an answer that nobody has given.
    pub fn waiting(&self) -> Vec<Waiting> {
        let calls = self.shard.calls.borrow();
        let asked = self.shard.rehearsal.asked.borrow();
        let open = asked.iter().filter(|asked| calls.is_open(asked.call));
        open.map(|asked| Waiting { who: asked.by.clone(), target: asked.target.clone(), method: asked.method })
            .collect()
    }

    /// Whether some turn waits for something else than an answer, or some delivery for its next try: it may help to let time pass.
    pub fn waits_for_time(&self) -> bool {
        if self.shard.has_to_try_again() {
            return true;
        }
        let turns = self.shard.turns.borrow();
        if turns.iter().next().is_none() {
            return false;
        }
        let asked = self.shard.rehearsal.asked.borrow();
        let calls = self.shard.calls.borrow();
        let asks = |id: &ActorId| {
            let own = |asked: &&Asked| matches!(&asked.by, Party::Actor(by) if by == id);
            asked.iter().filter(own).any(|asked| calls.is_open(asked.call))
        };
        turns.iter().any(|turn| !beside::is_beside(turn.activation.id()) && !asks(turn.activation.id()))
    }

    /// Whether time alone may let somebody go on, though there are steps: a timer waits, or a turn for something else than an answer. Turns
    /// of actors that are `timed`, by their hashes, may wait for a moment beside an answer.
    pub fn may_wait_for_time(&self, timed: &BTreeSet<u64>) -> bool {
        if self.next_timer().is_some() {
            return true;
        }
        let rehearsal = &self.shard.rehearsal;
        let makers = rehearsal.turns.borrow();
        if makers.is_empty() {
            return false;
        }
        let (turns, ready, held) = (self.shard.turns.borrow(), self.shard.ready.borrow(), rehearsal.held.borrow());
        let (asked, calls) = (rehearsal.asked.borrow(), self.shard.calls.borrow());
        let hears = |at: u64| {
            asked.iter().any(|asked| asked.touches.0 == at && calls.is_open(asked.call))
                || held.iter().filter(|held| held.at == at).any(|held| match &held.what {
                    What::Answer { .. } | What::Operation(Operation { by: Party::Actor(_), .. }) => true,
                    What::Operation(_) | What::Message { .. } | What::Deed(_) => false,
                })
        };
        if self.shard.has_to_try_again() {
            return true;
        }
        let mut waiting =
            makers.iter().filter(|maker| turns.find(maker.turn).is_some() && !ready.contains(&maker.turn));
        waiting.any(|maker| !maker.is_beside && (!hears(maker.at) || timed.contains(&maker.at)))
    }

    /// Whether a client waits for an answer, or has one under way.
    pub fn is_to_hear(&self, client: u32) -> bool {
        let (held, asked) = (self.shard.rehearsal.held.borrow(), self.shard.rehearsal.asked.borrow());
        let hash = Party::Client(client).hash();
        // Nothing but answers touches clients.
        asked.iter().any(|asked| asked.touches.0 == hash) || held.iter().any(|held| held.at == hash)
    }

    /// How many turns have begun on the shard.
    pub fn turns_begun(&self) -> u64 {
        self.shard.turns_begun.get()
    }

    /// Lets what time makes due be of the step of this number.
    pub fn begin_time(&self, number: u64) {
        self.shard.rehearsal.step.set(number);
        self.shard.rehearsal.begun.set(0);
    }

    /// For how long no call runs out of time.
    pub fn until_deadline(&self) -> Option<Duration> {
        let due = self.shard.calls.borrow().next_sweep()?;
        Some(due.since(self.shard.port.node.world().now()))
    }

    /// When the next of the actors' timers is due.
    pub fn next_timer(&self) -> Option<Timestamp> {
        let of_parts = self.shard.player().and_then(|player| player.next_due(&self.shard));
        self.shard.timers.borrow().next().into_iter().chain(of_parts).min()
    }

    /// Whether any turn has panicked since [`take_panics`](Self::take_panics).
    pub fn has_panics(&self) -> bool {
        !self.shard.rehearsal.panics.borrow().is_empty()
    }

    /// The panics of turns since this was last asked.
    pub fn take_panics(&self) -> Vec<String> {
        self.shard.rehearsal.panics.take()
    }

    /// The first actor whose invariant does not hold, and what is wrong.
    pub fn unsound(&self) -> Option<(ActorId, String)> {
        if !self.shard.rehearsal.has_invariants.get() {
            return None;
        }
        let activations = self.shard.activations.borrow();
        activations.iter().find_map(|one| one.unsound().map(|why| (one.id().clone(), why)))
    }

    /// Notes from here on what happens, or does not any more.
    pub fn listen(&self, on: bool) {
        self.shard.rehearsal.events.listen(on);
    }

    /// What has happened since this was last asked, if somebody listens.
    pub fn take_events(&self) -> Vec<Event> {
        self.shard.rehearsal.events.take()
    }

    /// The activations of this moment.
    pub fn look(&self) -> Look {
        let activations = self.shard.activations.borrow().iter().cloned().collect();
        let in_flight = self.shard.rehearsal.held.borrow().iter().filter(|held| held.what.is_in_flight()).count();
        Look { activations, in_flight }
    }
}

impl Shard {
    /// Lets activations begin what waits in their mailboxes: ticks, and what came while they began. Then parts of the shard see what has come of it.
    fn settle(&self) {
        self.run_all();
        if let Some(player) = self.player() {
            player.settle(self);
            self.run_all();
        }
    }

    fn run_all(&self) {
        loop {
            let next = self.runnable.borrow_mut().pop_front();
            match next {
                Some(activation) => activation.run(self),
                None => break,
            }
        }
    }
}
