//! A shard on a stage: what would happen by itself waits until somebody chooses it.
//!
//! Messages, answers and turns that were woken are held, and each of them is a [`Step`]. All else of a shard is as it always is.

mod beside;
mod deed;
mod events;
mod faults;
mod labels;
mod look;
mod maybe;
mod reset;
mod stage;
mod step;
mod stored;
mod ticks;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use greenroom_world::Timestamp;

use super::activation::AnyActivation;
use super::beside as tasks;
use super::calls::{CallSlot, Completion};
use super::chain::Link;
use super::mail::{AnyMail, Form};
use super::submit::AnyParcel;
use super::turns::{Access, Frame, TurnId};
use super::{Shard, Slot};
use crate::actor::error::Failure;
use crate::actor::key;
use crate::actor::key::ActorId;
use crate::actor::reference::{Inner, Route};

pub(crate) use self::beside::{Insists, NextStep, begin_on_stage, is_staged, note_insists};
use self::deed::Acting;
pub(crate) use self::deed::{Deed, Player};
use self::events::Events;
pub(crate) use self::events::is_told;
pub use self::events::{Answer, Event, Happened};
pub use self::faults::Fault;
use self::labels::Labels;
pub use self::look::{Look, Seen};
pub use self::maybe::ask_maybe;
pub use self::reset::Digest;
pub use self::stage::Stage;
pub use self::step::{Kind, Party, Performed, Step, Waiting, mix};
use self::stored::Operation;
pub use self::stored::{Outcome, hold_late_write, hold_operation};
use self::ticks::Ticks;

pub(crate) use self::maybe::maybe;
pub(crate) use self::reset::note_lasting;
pub(crate) use self::ticks::forget_ticks;

/// What a shard holds back.
pub(super) struct Rehearsal {
    on: bool,
    /// Whether the next message, or answer, is the one that was chosen.
    passes: Cell<bool>,
    /// Whether all is to be forgotten: what is sent meanwhile goes nowhere.
    falls: Cell<bool>,
    /// The client that is being polled.
    client: Cell<Option<u32>>,
    /// The step that is being done, and how many turns have begun in it.
    step: Cell<u64>,
    begun: Cell<u64>,
    held: RefCell<Vec<Held>>,
    asked: RefCell<Vec<Asked>>,
    places: RefCell<Vec<Place>>,
    turns: RefCell<Vec<Maker>>,
    /// How much each client has made, by its number.
    clients: RefCell<Vec<u64>>,
    /// How much nobody has made.
    made: Cell<u64>,
    panics: RefCell<Vec<String>>,
    labels: RefCell<Labels>,
    /// How calls end whose messages are dropped now.
    ends_as: RefCell<Option<Failure>>,
    /// Whether something was done that outlives the shard, and the kinds whose actors do not do such.
    is_stained: Cell<bool>,
    /// Whether any activation has had an invariant.
    has_invariants: Cell<bool>,
    plain: RefCell<Vec<(key::Kind, bool)>>,
    /// Forgets what actors have saved, if that can be.
    forget_states: RefCell<Option<Rc<dyn Fn()>>>,
    /// Who has actors of its own here, those of them that no turn may begin on, and in whose name something is done.
    player: RefCell<Option<Rc<dyn Player>>>,
    occupied: RefCell<Vec<u64>>,
    acting: RefCell<Option<Acting>>,
    ticks: Ticks,
    events: Events,
}

/// Where an activation is.
#[derive(Clone, Copy)]
struct Place {
    /// The actor, as a hash.
    actor: u64,
    slot: Slot,
    /// Whether it goes with its node.
    may_crash: bool,
}

/// A turn, as who makes steps.
struct Maker {
    turn: TurnId,
    number: u64,
    /// Whose turn it is, as a hash, and whether it runs beside turns.
    at: u64,
    is_beside: bool,
    insists: Insists,
    /// How much it has made.
    made: u64,
    /// The step in which it was woken.
    woken: u64,
}

struct Held {
    number: u64,
    /// The step that made it.
    born: u64,
    /// Whom it touches, and who made it, as hashes.
    at: u64,
    by: u64,
    /// One sender's messages to one actor are a queue; 0 for an answer.
    queue: u64,
    what: What,
}

enum What {
    Message {
        parcel: Box<dyn AnyParcel>,
        target: Arc<Inner>,
        from: Party,
        method: &'static str,
        access: Access,
        link: Link,
    },
    Answer {
        call: CallSlot,
        completion: Completion,
        message: u64,
        to: Party,
        from: ActorId,
        method: &'static str,
    },
    Operation(Operation),
    Deed(Deed),
}

impl What {
    /// Whether it is a message, or the answer to one.
    fn is_in_flight(&self) -> bool {
        match self {
            What::Message { .. } | What::Answer { .. } => true,
            What::Deed(deed) => deed.kind == Kind::Start,
            What::Operation(_) => false,
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Message { target, from, method, .. } => write!(f, "{}.{method}<{from}", target.id),
            What::Answer { to, from, method, .. } => write!(f, "{to}<{from}.{method}"),
            What::Operation(operation) => f.write_str(&operation.name),
            What::Deed(deed) => deed.fmt(f),
        }
    }
}

/// A call whose end has not been seen by its caller.
struct Asked {
    call: CallSlot,
    message: u64,
    by: Party,
    target: ActorId,
    /// The hashes of both: whom its answer touches, and who makes it.
    touches: (u64, u64),
    method: &'static str,
    /// Whether it has a deadline.
    is_bounded: bool,
}

impl Rehearsal {
    pub(super) fn new(on: bool) -> Self {
        Self {
            on,
            passes: Cell::new(false),
            falls: Cell::new(false),
            client: Cell::new(None),
            step: Cell::new(0),
            begun: Cell::new(0),
            held: RefCell::default(),
            asked: RefCell::default(),
            places: RefCell::default(),
            turns: RefCell::default(),
            clients: RefCell::default(),
            made: Cell::new(0),
            panics: RefCell::default(),
            labels: RefCell::default(),
            ends_as: RefCell::default(),
            is_stained: Cell::new(false),
            has_invariants: Cell::new(false),
            plain: RefCell::default(),
            forget_states: RefCell::default(),
            player: RefCell::default(),
            occupied: RefCell::default(),
            acting: RefCell::default(),
            ticks: Ticks::default(),
            events: Events::default(),
        }
    }

    /// Of a shard that begins now: on a stage if somebody has asked for it.
    pub(super) fn asked_for() -> Self {
        Self::new(stage::is_asked_for())
    }

    pub(super) fn is_on(&self) -> bool {
        self.on
    }

    fn note(&self, what: impl FnOnce() -> Happened) {
        self.events.note(self.step.get(), what);
    }

    fn hold(&self, number: u64, (at, by, queue): (u64, u64, u64), what: What) {
        let held = Held { number, born: self.step.get(), at, by, queue, what };
        self.held.borrow_mut().push(held);
    }

    fn take(&self, number: u64) -> Option<What> {
        let mut held = self.held.borrow_mut();
        let at = held.iter().position(|held| held.number == number)?;
        Some(held.remove(at).what)
    }
}

impl Shard {
    /// Holds a message back until its step; `false` if it is to go on.
    pub(super) fn hold_message(&self, target: &Arc<Inner>, mail: &mut dyn AnyMail) -> bool {
        let rehearsal = &self.rehearsal;
        if !rehearsal.on || rehearsal.passes.take() {
            return false;
        }
        if rehearsal.falls.get() {
            mail.clear();
            return true;
        }
        let (Form::Typed(method) | Form::Wire(method)) = mail.form() else { return false };
        let method = mail.interface().methods.get(usize::from(method));
        let access = if method.is_some_and(|method| method.read) { Access::Read } else { Access::Exclusive };
        let ((from, by), method) = (self.party(), method.map_or("?", |method| method.name));
        let number = self.next_number();
        let call = mail.reply().and_then(|reply| reply.call()).filter(|site| site.shard == self.id());
        if let Some(site) = call {
            let asked = Asked {
                call: site.slot,
                message: number,
                by: from.clone(),
                target: target.id.clone(),
                touches: (by, target.hash),
                method,
                is_bounded: mail.deadline() != Timestamp::NEVER,
            };
            rehearsal.asked.borrow_mut().push(asked);
        }
        rehearsal.note(|| Happened::Sent {
            message: number,
            from: from.clone(),
            to: target.id.clone(),
            method,
            arguments: events::arguments(mail),
            awaited: call.is_some(),
        });
        let link = mail.chain().map(|chain| chain.link.clone()).unwrap_or_default();
        if let Some(parcel) = mail.seal(self, target) {
            let queue = mix(by, target.hash) | 1;
            let what = What::Message { parcel, target: target.clone(), from, method, access, link };
            rehearsal.hold(number, (target.hash, by, queue), what);
        }
        true
    }

    /// Holds an answer back until its step; gives it back if it is to go on.
    pub(super) fn hold_answer(&self, call: CallSlot, completion: Completion) -> Option<Completion> {
        let rehearsal = &self.rehearsal;
        if !rehearsal.on || rehearsal.passes.take() || rehearsal.falls.get() {
            return Some(completion);
        }
        let mut asked = rehearsal.asked.borrow_mut();
        let Some(at) = asked.iter().position(|asked| asked.call == call) else { return Some(completion) };
        let Asked { by, message, target, method, touches: (to, from), .. } = asked.swap_remove(at);
        let failed = rehearsal.ends_as.borrow().clone().map(|failure| Completion::Failed(Box::new(failure)));
        let completion = failed.unwrap_or(completion);
        rehearsal.note(|| Happened::Answered { message, answer: Answer::from(&completion) });
        rehearsal.hold(
            mix(message, ANSWER),
            (to, from, 0),
            What::Answer { call, completion, message, to: by, from: target, method },
        );
        None
    }

    /// Remembers where an activation is.
    pub(super) fn note_place(&self, activation: &dyn AnyActivation) {
        if self.rehearsal.on {
            let (actor, may_crash) = (activation.id().stable_hash(), faults::may_crash(activation.id()));
            let place = Place { actor, slot: activation.slot(), may_crash };
            self.stain_by(activation.id());
            if activation.has_invariant() {
                self.rehearsal.has_invariants.set(true);
            }
            self.rehearsal.places.borrow_mut().push(place);
        }
    }

    /// Remembers that an activation is gone.
    pub(super) fn note_left(&self, slot: Slot) {
        if self.rehearsal.on {
            self.rehearsal.places.borrow_mut().retain(|place| place.slot != slot);
        }
    }

    /// Remembers that a turn begins.
    pub(super) fn note_begin(&self, frame: &Frame) {
        let rehearsal = &self.rehearsal;
        if !rehearsal.on {
            return;
        }
        let begun = rehearsal.begun.get();
        rehearsal.begun.set(begun + 1);
        let number = mix(rehearsal.step.get(), begun);
        let (id, slot) = (frame.activation.id(), frame.activation.slot());
        let place = rehearsal.places.borrow().iter().find(|place| place.slot == slot).copied();
        let at = place.map_or_else(|| id.stable_hash(), |place| place.actor);
        let is_beside = place.is_none() && tasks::is_beside(id);
        let (turn, insists) = (frame.id, Insists::Not);
        rehearsal.turns.borrow_mut().push(Maker { turn, number, at, is_beside, insists, made: 0, woken: 0 });
    }

    /// Remembers that a turn is over; `panic` is what it said if it panicked.
    pub(super) fn note_end(&self, frame: &Frame, panic: Option<&str>) {
        let rehearsal = &self.rehearsal;
        if !rehearsal.on {
            return;
        }
        if let Some(message) = panic {
            let turn = frame.activation.name_of(frame.job.get().method);
            rehearsal.panics.borrow_mut().push(format!("{turn} panicked: {message}"));
        }
        let mut turns = rehearsal.turns.borrow_mut();
        if let Some(at) = turns.iter().position(|maker| maker.turn == frame.id) {
            turns.swap_remove(at);
        }
        rehearsal.note(|| Happened::Ended {
            actor: frame.activation.id().clone(),
            method: frame.activation.method_name(frame.job.get().method),
            panic: panic.map(str::to_owned),
        });
    }

    /// Remembers in which step a turn is woken.
    pub(super) fn note_wake(&self, turn: TurnId) {
        if self.rehearsal.on {
            let mut turns = self.rehearsal.turns.borrow_mut();
            if let Some(maker) = turns.iter_mut().find(|maker| maker.turn == turn) {
                maker.woken = self.rehearsal.step.get();
            }
        }
    }

    /// Who acts now, with its hash.
    fn party(&self) -> (Party, u64) {
        let party = match (&*self.rehearsal.acting.borrow(), self.current(), self.rehearsal.client.get()) {
            (Some(acting), ..) => acting.party.clone(),
            (None, Some(frame), _) => {
                let (id, turns) = (frame.activation.id(), self.rehearsal.turns.borrow());
                let maker = turns.iter().find(|maker| maker.turn == frame.id);
                return (Party::Actor(id.clone()), maker.map_or_else(|| id.stable_hash(), |maker| maker.at));
            }
            (None, None, Some(client)) => Party::Client(client),
            (None, None, None) => Party::Runtime,
        };
        let hash = party.hash();
        (party, hash)
    }

    /// A number for what is made now.
    fn next_number(&self) -> u64 {
        let rehearsal = &self.rehearsal;
        if let Some(acting) = &mut *rehearsal.acting.borrow_mut() {
            acting.made += 1;
            return mix(acting.number, acting.made);
        }
        if let Some(frame) = self.current() {
            return rehearsal.number_by(frame.id);
        }
        let Some(client) = rehearsal.client.get() else {
            rehearsal.made.set(rehearsal.made.get() + 1);
            return mix(rehearsal.step.get(), mix(RUNTIME, rehearsal.made.get()));
        };
        let (mut clients, at) = (rehearsal.clients.borrow_mut(), client as usize);
        if clients.len() <= at {
            clients.resize(at + 1, 0);
        }
        clients[at] += 1;
        mix(CLIENT | u64::from(client), clients[at])
    }

    /// Whether the turn of a message could begin now, or would be told that it never can.
    fn may_start(&self, target: &Inner, access: Access, link: &Link) -> bool {
        if self.has_in_company(target) {
            return !self.is_occupied(target.hash);
        }
        let place = {
            let places = self.rehearsal.places.borrow();
            places.iter().find(|place| place.actor == target.hash).map(|place| place.slot)
        };
        let Some(slot) = place else { return true };
        let Some(activation) = self.activation(slot) else { return true };
        // Of stateless workers there are as many as it takes.
        activation.clone().is_free(self, access)
            || self.port.node.kinds().workers(target.id.kind) > 0
            || self.cycle(link, activation.id()).is_some()
    }

    /// Whether a part of the shard has the actor.
    fn has_in_company(&self, target: &Inner) -> bool {
        self.port.node.kinds().is_reliable(target.id.kind)
    }

    /// Lets a message go where its actor is known to be.
    fn guide(&self, target: &Inner) {
        if let Route::Unresolved = target.route()
            && !target.forged
            && !self.has_in_company(target)
            && self.port.node.kinds().workers(target.id.kind) == 0
            && let Some(place) = self.rehearsal.places.borrow().iter().find(|place| place.actor == target.hash)
        {
            target.set_route(Route::Here(self.id(), place.slot));
        }
    }

    /// Polls what an answer, or a wake, has woken since there were `before` turns to be polled.
    fn resume_since(&self, before: usize) {
        if self.ready.borrow().len() == before + 1 {
            let turn = self.ready.borrow_mut().pop_back();
            return turn.into_iter().for_each(|turn| self.resume_turn(turn));
        }
        let woken = self.ready.borrow_mut().split_off(before);
        woken.into_iter().for_each(|turn| self.resume_turn(turn));
    }
}

impl Rehearsal {
    /// A number for what this turn makes now.
    fn number_by(&self, turn: TurnId) -> u64 {
        let mut turns = self.turns.borrow_mut();
        match turns.iter_mut().find(|maker| maker.turn == turn) {
            Some(maker) => {
                maker.made += 1;
                mix(maker.number, maker.made)
            }
            None => mix(self.step.get(), RUNTIME),
        }
    }

    /// A number for the next wake of a turn that no message and no answer has, whose it is, and the step that has woken it.
    fn wake_of(&self, turn: TurnId) -> (u64, u64, u64) {
        let turns = self.turns.borrow();
        let known = turns.iter().find(|maker| maker.turn == turn);
        known.map_or((WAKE, 0, 0), |maker| (mix(maker.number, WAKE | maker.made), maker.at, maker.woken))
    }
}

/// Tell what is numbered apart.
const ANSWER: u64 = 1 << 62;
const CLIENT: u64 = 2 << 61;
const RUNTIME: u64 = 3 << 61;
const WAKE: u64 = 5 << 61;
