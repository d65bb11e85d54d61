//! A shard on a stage: what would happen by itself waits until somebody chooses it.
//!
//! Messages, answers and turns that were woken are held, and each of them is a [`Step`]. All else of a shard is as it always is.

mod events;
mod maybe;

use std::any::Any;
use std::cell::{Cell, Ref, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use greenroom_world::Timestamp;

use self::events::Events;
pub use self::events::{Answer, Event, Happened};
pub use self::maybe::ask_maybe;
pub(crate) use self::maybe::maybe;
use super::Shard;
use super::activation::AnyActivation;
use super::calls::{CallSlot, Completion};
use super::mail::{AnyMail, Form};
use super::submit::AnyParcel;
use super::turns::{Access, Frame, Link, TurnId};
use crate::actor::interface::Behaviour;
use crate::actor::key::{ActorId, Key};
use crate::actor::reference::Inner;

/// What a shard holds back.
pub(super) struct Rehearsal {
    on: bool,
    /// Whether the next message, or answer, is the one that was chosen.
    passes: Cell<bool>,
    /// The client that is being polled.
    client: Cell<Option<u32>>,
    /// The step that is being done.
    step: Cell<u64>,
    last: Cell<u64>,
    held: RefCell<Vec<Held>>,
    asked: RefCell<Vec<Asked>>,
    panics: RefCell<Vec<String>>,
    events: Events,
}

struct Held {
    number: u64,
    /// The step that made it.
    born: u64,
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
        /// What it answers.
        message: u64,
        call: CallSlot,
        completion: Completion,
        to: Party,
        from: ActorId,
        method: &'static str,
    },
}

/// A call whose end has not been seen by its caller.
struct Asked {
    /// The number of its message.
    message: u64,
    call: CallSlot,
    by: Party,
    target: ActorId,
    method: &'static str,
}

/// Who acts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Party {
    /// A client of the test, by its number.
    Client(u32),
    /// An actor.
    Actor(ActorId),
    /// The runtime.
    Runtime,
}

impl Party {
    /// Tells it from others.
    fn hash(&self) -> u64 {
        match self {
            Party::Client(number) => u64::from(*number) + 1,
            Party::Actor(id) => id.stable_hash(),
            Party::Runtime => 0,
        }
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Party::Client(number) => write!(f, "client {number}"),
            Party::Actor(id) => write!(f, "{id}"),
            Party::Runtime => f.write_str("the runtime"),
        }
    }
}

/// Something that can happen next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Tells it from all others of its run.
    pub number: u64,
    /// What it is.
    pub kind: Kind,
    /// Whom it touches, as a hash.
    pub at: u64,
    /// Who made it, as a hash.
    pub by: u64,
    /// The number of the step that made it.
    pub born: u64,
}

/// What a step is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// A message comes, and its turn begins.
    Start,
    /// An answer comes, and who waits for it goes on.
    Answer,
    /// A turn goes on that something else has woken.
    Wake,
    /// A client goes on.
    Client,
}

/// What a step has done, beside what it has done to actors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Performed {
    /// Nothing.
    Whole,
    /// This client is to be polled: that is a part of the step.
    Client(u32),
}

/// Who waits for an answer.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// Who.
    pub who: Party,
    /// For whom.
    pub target: ActorId,
    /// For what.
    pub method: &'static str,
}

thread_local! {
    static ASKED_FOR: Cell<bool> = const { Cell::new(false) };
    static ON_STAGE: RefCell<Option<Rc<Shard>>> = const { RefCell::new(None) };
}

impl Rehearsal {
    pub(super) fn asked_for() -> Self {
        Self {
            on: ASKED_FOR.get(),
            passes: Cell::new(false),
            client: Cell::new(None),
            step: Cell::new(0),
            last: Cell::new(0),
            held: RefCell::default(),
            asked: RefCell::default(),
            panics: RefCell::default(),
            events: Events::default(),
        }
    }

    pub(super) fn is_on(&self) -> bool {
        self.on
    }

    /// The number of what is held next.
    fn next_number(&self) -> u64 {
        self.last.get() + 1
    }

    fn hold(&self, what: What) {
        let number = self.next_number();
        self.last.set(number);
        let held = Held { number, born: self.step.get(), what };
        self.held.borrow_mut().push(held);
    }

    fn note(&self, what: impl FnOnce() -> Happened) {
        self.events.note(self.step.get(), what);
    }

    fn take(&self, number: u64) -> Option<What> {
        let mut held = self.held.borrow_mut();
        let at = held.iter().position(|held| held.number == number)?;
        Some(held.remove(at).what)
    }
}

impl Shard {
    /// Lets a [`Stage`] have it, if there is to be one.
    pub(super) fn show_on_stage(self: &Rc<Self>) {
        if self.rehearsal.on {
            ON_STAGE.with_borrow_mut(|stage| *stage = Some(self.clone()));
        }
    }

    /// Holds a message back until its step; `false` if it is to go on.
    pub(super) fn hold_message(&self, target: &Arc<Inner>, mail: &mut dyn AnyMail) -> bool {
        let rehearsal = &self.rehearsal;
        if !rehearsal.on || rehearsal.passes.take() {
            return false;
        }
        let (Form::Typed(method) | Form::Wire(method)) = mail.form() else { return false };
        let method = mail.interface().methods.get(usize::from(method));
        let access = if method.is_some_and(|method| method.read) { Access::Read } else { Access::Exclusive };
        let (from, method) = (self.party(), method.map_or("?", |method| method.name));
        let call = mail.reply().and_then(|reply| reply.call()).filter(|site| site.shard == self.id());
        if let Some(site) = call {
            let message = rehearsal.next_number();
            let asked = Asked { message, call: site.slot, by: from.clone(), target: target.id.clone(), method };
            rehearsal.asked.borrow_mut().push(asked);
        }
        rehearsal.note(|| Happened::Sent {
            message: rehearsal.next_number(),
            from: from.clone(),
            to: target.id.clone(),
            method,
            arguments: events::arguments(mail),
            awaited: call.is_some(),
        });
        let link = mail.chain().map(|chain| chain.link.clone()).unwrap_or_default();
        if let Some(parcel) = mail.seal(target) {
            rehearsal.hold(What::Message { parcel, target: target.clone(), from, method, access, link });
        }
        true
    }

    /// Holds an answer back until its step; gives it back if it is to go on.
    pub(super) fn hold_answer(&self, call: CallSlot, completion: Completion) -> Option<Completion> {
        let rehearsal = &self.rehearsal;
        if !rehearsal.on || rehearsal.passes.take() {
            return Some(completion);
        }
        let mut asked = rehearsal.asked.borrow_mut();
        let Some(at) = asked.iter().position(|asked| asked.call == call) else { return Some(completion) };
        let Asked { message, by, target, method, .. } = asked.swap_remove(at);
        rehearsal.note(|| Happened::Answered { message, answer: Answer::from(&completion) });
        rehearsal.hold(What::Answer { message, call, completion, to: by, from: target, method });
        None
    }

    /// Remembers that a turn has panicked.
    pub(super) fn note_panic(&self, frame: &Frame, message: &str) {
        if self.rehearsal.on {
            let turn = frame.activation.name_of(frame.job.method);
            self.rehearsal.panics.borrow_mut().push(format!("{turn} panicked: {message}"));
        }
    }

    /// Who acts now.
    fn party(&self) -> Party {
        match (self.current(), self.rehearsal.client.get()) {
            (Some(frame), _) => Party::Actor(frame.activation.id().clone()),
            (None, Some(client)) => Party::Client(client),
            (None, None) => Party::Runtime,
        }
    }

    /// Whether the turn of a message could begin now, or would be told that it never can.
    fn may_start(&self, target: &Inner, access: Access, link: &Link) -> bool {
        // Of stateless workers there are as many as it takes.
        if self.port.node.kinds().workers(target.id.kind) > 0 {
            return true;
        }
        let found = self.activations.borrow().iter().find(|one| *one.id() == target.id).cloned();
        found.is_none_or(|activation| activation.is_free(access) || self.cycle(link, &target.id).is_some())
    }

    /// Polls what an answer, or a wake, has woken since there were `before` turns to be polled.
    fn resume_since(&self, before: usize) {
        let woken = self.ready.borrow_mut().split_off(before);
        woken.into_iter().for_each(|turn| self.resume_turn(turn));
    }
}

/// A shard of this thread, for who chooses what happens on it.
pub struct Stage {
    shard: Rc<Shard>,
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
        let shard = &*self.shard;
        let held = shard.rehearsal.held.borrow();
        for (at, Held { number, born, what }) in held.iter().enumerate() {
            let step = match what {
                What::Answer { to, from, .. } => {
                    Step { number: *number, kind: Kind::Answer, at: to.hash(), by: from.stable_hash(), born: *born }
                }
                What::Message { target, from, access, link, .. } => {
                    let is_behind = held[..at].iter().any(|before| match &before.what {
                        What::Message { target: other, from: by, .. } => other.id == target.id && by == from,
                        What::Answer { .. } => false,
                    });
                    if is_behind || !shard.may_start(target, *access, link) {
                        continue;
                    }
                    Step { number: *number, kind: Kind::Start, at: target.hash, by: from.hash(), born: *born }
                }
            };
            out.push(step);
        }
        let turns = shard.turns.borrow();
        for turn in shard.ready.borrow().iter() {
            let at = turns.find(*turn).map_or(0, |turn| turn.activation.id().stable_hash());
            out.push(Step { number: of_turn(*turn), kind: Kind::Wake, at, by: at, born: 0 });
        }
    }

    /// What a step is called.
    pub fn name(&self, step: &Step) -> String {
        if step.kind == Kind::Wake {
            let turns = self.shard.turns.borrow();
            let ready = self.shard.ready.borrow();
            let woken = ready.iter().find(|turn| of_turn(**turn) == step.number).and_then(|turn| turns.find(*turn));
            return woken.map_or_else(
                || "wake".to_owned(),
                |turn| format!("wake {}", turn.activation.name_of(turn.job.method)),
            );
        }
        let held = self.shard.rehearsal.held.borrow();
        match held.iter().find(|held| held.number == step.number).map(|held| &held.what) {
            Some(What::Message { target, from, method, .. }) => format!("{}.{method}<{from}", target.id),
            Some(What::Answer { to, from, method, .. }) => format!("{to}<{from}.{method}"),
            None => format!("#{}", step.number),
        }
    }

    /// Does it.
    pub fn perform(&self, step: &Step) -> Performed {
        let shard = &*self.shard;
        let rehearsal = &shard.rehearsal;
        shard.now.set(shard.port.node.world().now());
        rehearsal.step.set(step.number);
        shard.refill_budget();
        let performed = shard.enter(|| {
            let before = shard.ready.borrow().len();
            match (step.kind, rehearsal.take(step.number)) {
                (_, Some(What::Message { parcel, .. })) => {
                    rehearsal.note(|| Happened::Came { message: step.number });
                    rehearsal.passes.set(true);
                    parcel.deliver(shard);
                    rehearsal.passes.set(false);
                }
                (_, Some(What::Answer { message, call, completion, to, .. })) => {
                    rehearsal.note(|| Happened::Heard { message });
                    rehearsal.passes.set(true);
                    shard.complete(call, completion);
                    rehearsal.passes.set(false);
                    shard.resume_since(before);
                    if let Party::Client(number) = to {
                        return Performed::Client(number);
                    }
                }
                (Kind::Wake, None) => {
                    let turn = shard.ready.borrow().iter().position(|turn| of_turn(*turn) == step.number);
                    let turn = turn.and_then(|at| shard.ready.borrow_mut().remove(at));
                    turn.into_iter().for_each(|turn| shard.resume_turn(turn));
                }
                _ => {}
            }
            Performed::Whole
        });
        self.settle();
        performed
    }

    /// Calls `poll` as a client: what it sends is the client's.
    pub fn as_client<R>(&self, number: u32, step: u64, poll: impl FnOnce() -> R) -> R {
        let shard = &*self.shard;
        shard.now.set(shard.port.node.world().now());
        shard.rehearsal.step.set(step);
        shard.rehearsal.client.set(Some(number));
        let polled = shard.enter(poll);
        shard.rehearsal.client.set(None);
        self.settle();
        polled
    }

    /// Lets activations begin what waits in their mailboxes: ticks, and what came while they began.
    fn settle(&self) {
        let shard = &*self.shard;
        shard.enter(|| {
            loop {
                let next = shard.runnable.borrow_mut().pop_front();
                match next {
                    Some(activation) => activation.run(shard),
                    None => break,
                }
            }
        });
    }

    /// Who waits for an answer that nobody has given.
    pub fn waiting(&self) -> Vec<Waiting> {
        let calls = self.shard.calls.borrow();
        let asked = self.shard.rehearsal.asked.borrow();
        let open = asked.iter().filter(|asked| calls.is_open(asked.call));
        open.map(|asked| Waiting { who: asked.by.clone(), target: asked.target.clone(), method: asked.method })
            .collect()
    }

    /// Whether some turn waits for something else than an answer, or a timer for its time: it may help to let time pass.
    pub fn waits_for_time(&self) -> bool {
        let asked = self.shard.rehearsal.asked.borrow();
        let calls = self.shard.calls.borrow();
        let asks = |id: &ActorId| {
            let own = |asked: &&Asked| matches!(&asked.by, Party::Actor(by) if by == id);
            asked.iter().filter(own).any(|asked| calls.is_open(asked.call))
        };
        let turns = self.shard.turns.borrow();
        turns.iter().any(|turn| !super::beside::is_beside(turn.activation.id()) && !asks(turn.activation.id()))
    }

    /// When the next of the actors' timers is due.
    pub fn next_timer(&self) -> Option<Timestamp> {
        self.shard.timers.borrow().next()
    }

    /// The first actor whose invariant does not hold, and what is wrong.
    pub fn unsound(&self) -> Option<(ActorId, String)> {
        let activations = self.shard.activations.borrow();
        activations.iter().find_map(|one| Some((one.id().clone(), one.unsound()?)))
    }

    /// Notes from here on what happens, or does not any more.
    pub fn listen(&self, on: bool) {
        self.shard.rehearsal.events.listen(on);
    }

    /// What has happened since this was last asked, if somebody listens.
    pub fn take_events(&self) -> Vec<Event> {
        self.shard.rehearsal.events.take()
    }

    /// The panics of turns since this was last asked.
    pub fn take_panics(&self) -> Vec<String> {
        self.shard.rehearsal.panics.take()
    }

    /// The activations of this moment.
    pub fn look(&self) -> Look {
        Look { activations: self.shard.activations.borrow().iter().cloned().collect() }
    }
}

/// A number for the wake of a turn that no message and no answer has.
fn of_turn(turn: TurnId) -> u64 {
    1 << 63 | u64::from(turn.generation) << 32 | u64::from(turn.index)
}

/// The activations of one moment: nothing happens while somebody looks at them.
pub struct Look {
    activations: Vec<Rc<dyn AnyActivation>>,
}

/// An actor that somebody looks at, if no exclusive turn has it.
pub type Seen<'a, A> = Option<Ref<'a, A>>;

impl Look {
    /// What the actors are as text, by their names: those that can be shown and that no exclusive turn has.
    pub fn shown(&self) -> Vec<(String, String)> {
        let shown = self.activations.iter().filter_map(|one| Some((one.id().to_string(), one.shown()?)));
        shown.collect()
    }

    /// The actors of one type, by their keys.
    pub fn all<A: Behaviour>(&self) -> impl Iterator<Item = (&Key, Seen<'_, A>)> {
        self.activations.iter().filter_map(|activation| {
            let actor: &dyn Any = activation.actor();
            let cell = actor.downcast_ref::<RefCell<Option<A>>>()?;
            let key = &activation.id().key;
            match cell.try_borrow() {
                // It has not been made yet.
                Ok(actor) if actor.is_none() => None,
                Ok(actor) => Some((key, Ref::filter_map(actor, Option::as_ref).ok())),
                Err(_) => Some((key, None)),
            }
        })
    }
}
