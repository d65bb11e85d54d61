//! One activation: an actor in memory, its mailbox, and the rules of its turns.

mod admission;
mod life;
mod messages;
mod runs;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use greenroom_world::{LocalFuture, Timestamp};

use super::chain::{Chain, Link};
use super::envelope::{Body, Envelope, IncomingCall, WireCall};
use super::frames::{Begun, Caller};
use super::inspect::Waiting;
use super::mailbox::Mailbox;
use super::seed::Seed;
use super::ticking::Mark;
use super::turns::{Access, Job};
use super::{Shard, Slot, watched};
use crate::actor::cx::Cx;
use crate::actor::error::{Doubt, Failure, Refusal};
use crate::actor::interface::{Behaviour, Interface, Message, Why};
use crate::actor::key::ActorId;
use crate::actor::reply::{RuntimeEnd, WireReply};
use crate::here::kinds::KindEntry;
use crate::pids::ended::Ended;
use crate::shard::calls::Completion;
use crate::state::{Held, Saving};

/// Whose turn a frame runs.
pub(crate) trait HasTurns {
    fn id(&self) -> &ActorId;
    fn slot(&self) -> Slot;

    /// A turn is over; `panic` is the message if it panicked.
    fn turn_ended(self: Rc<Self>, shard: &Shard, job: Job, panic: Option<&str>);

    /// Keeps the reply of the exclusive turn until its state is saved.
    fn hold(&self, reply: Box<dyn Held>);

    /// Keeps it from being idle before `until`.
    fn keep(&self, until: Timestamp);

    /// Ends it as soon as no turn runs.
    fn end(self: Rc<Self>, shard: &Shard, why: Why);

    /// Messages that wait.
    fn waiting(&self) -> usize;

    /// Shows who waits for each message that waits.
    fn each_waiter(&self, look: &mut dyn FnMut(&Link));

    /// The method with this number, for people.
    fn method_name(&self, method: u16) -> String;

    /// The actor and the method with this number, for people.
    fn name_of(&self, method: u16) -> String;
}

/// An activation whose actor's type is not known.
pub(crate) trait AnyActivation: HasTurns {
    /// Makes the actor of `seed` and begins the `activated` hook, whose end the callers in `callers` wait for.
    fn start(self: Rc<Self>, shard: &Shard, seed: Seed, callers: Link) -> Result<(), Refusal>;

    /// Takes an `Option<Envelope<Message>>` of its own message type out of `parcel`, unless it has ended: then the
    /// envelope stays.
    fn offer(self: Rc<Self>, shard: &Shard, parcel: &mut dyn Any) -> Result<(), Refusal>;

    /// Takes such an envelope into the mailbox, though its turn might begin at once, as others are right behind it: they begin
    /// together. `false` if this is not the place for it: it is still there, and is to be offered.
    fn gather(self: Rc<Self>, shard: &Shard, parcel: &mut dyn Any) -> bool;

    /// Whether a turn of `access` can begin now, with nothing before it: what has gathered begins first.
    fn is_free(self: Rc<Self>, shard: &Shard, access: Access) -> bool;

    /// Begins a turn of a free activation on its caller's stack, for the `Option<Message>` in `message`. `None` if that
    /// is not a message of its own type: it stays.
    fn begin_here(
        self: Rc<Self>,
        shard: &Shard,
        access: Access,
        message: &mut dyn Any,
        deadline: Timestamp,
        caller: Caller,
    ) -> Option<Begun>;

    /// Takes a message that came as bytes. `payload` is copied only if it must wait. Gives the reply back if the
    /// activation has ended, or refuses.
    fn offer_wire(self: Rc<Self>, shard: &Shard, call: IncomingCall<'_>) -> Result<(), (Option<Refusal>, WireReply)>;

    /// Takes a tick, unless the activation ends.
    fn offer_tick(self: Rc<Self>, shard: &Shard, call: WireCall, mark: Mark);

    /// Begins what waits in the mailbox, as far as the rules allow.
    fn run(self: Rc<Self>, shard: &Shard);

    /// Makes a spawned actor that has failed anew.
    fn restart(self: Rc<Self>, shard: &Shard);

    /// Reads its states again before its next turn, if it has any: another instance may have saved them.
    fn reload(&self);

    /// Takes in that an actor that it watches has ended.
    fn notify(self: Rc<Self>, shard: &Shard, ended: Ended);

    /// Whether it has an `ended` hook.
    fn hears(&self) -> bool;

    /// Begins a save that is due; says when to look again if it is too early.
    fn check_save(self: Rc<Self>, shard: &Shard, now: Timestamp) -> Option<Timestamp>;

    /// If nothing came for the kind's idle time, ends it; otherwise says when to look again.
    fn check_idle(self: Rc<Self>, shard: &Shard, now: Timestamp) -> Option<Timestamp>;

    /// Refuses what has waited so long that it could not end in time.
    fn check_late(self: Rc<Self>, shard: &Shard, now: Timestamp);

    /// Shows each message that waits, the first one first.
    fn each_message(&self, now: Timestamp, look: &mut dyn FnMut(Waiting<'_>));

    /// What it is about, for people.
    fn state(&self) -> &'static str;

    /// When it was made, and when its last turn began.
    fn moments(&self) -> (Timestamp, Timestamp);

    /// Until when it is kept; long ago, if it is not.
    fn kept_until(&self) -> Timestamp;

    /// Refuses what waits.
    fn refuse_waiting(&self, refusal: &Refusal);

    /// Whether a turn runs or waits.
    fn busy(&self) -> bool;

    /// Leaves without a word, with what waits; its turns are gone.
    #[cfg(feature = "rehearsal")]
    fn vanish(self: Rc<Self>, shard: &Shard);

    /// The `RefCell<Option<_>>` that the actor is in.
    #[cfg(feature = "rehearsal")]
    fn actor(&self) -> &dyn Any;

    /// What it is as text, if it can be shown and no exclusive turn has it.
    #[cfg(feature = "rehearsal")]
    fn shown(&self) -> Option<String> {
        None
    }

    /// Whether it has an invariant.
    #[cfg(feature = "rehearsal")]
    fn has_invariant(&self) -> bool {
        false
    }

    /// What is wrong with it, if it has an invariant and no exclusive turn has it.
    #[cfg(feature = "rehearsal")]
    fn unsound(&self) -> Option<String> {
        None
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Made; the `activated` hook runs, if there is one.
    Starting,
    Ready,
    /// The `deactivating` hook runs.
    Ending,
    Gone,
}

/// An activation of an `A`.
pub(crate) struct Activation<A: Behaviour> {
    pub(super) cx: Cx,
    pub(super) kind: Arc<KindEntry<A>>,
    pub(super) slot: Slot,
    pub(super) actor: RefCell<Option<A>>,
    pub(super) mailbox: Mailbox<Envelope<Message<A>>>,
    /// When it was made, in hundredths of a second of the shard's clock.
    pub(super) made: u32,
    /// In the same unit.
    pub(super) last_used: Cell<u32>,
    /// Not idle before this, in the same unit.
    pub(super) kept_until: Cell<u32>,
    pub(super) reads: Cell<u32>,
    pub(super) phase: Cell<Phase>,
    pub(super) exclusive: Cell<bool>,
    pub(super) scheduled: Cell<bool>,
    /// Whether a look at what waits is due within a second.
    pub(super) watched: Cell<bool>,
    pub(super) asked_to_end: Cell<Option<Why>>,
    /// True if it reads its states again before its next turn.
    pub(super) is_stale: Cell<bool>,
}

impl<A: Behaviour> Activation<A> {
    /// A new activation. [`AnyActivation::start`] comes next.
    pub(crate) fn new(cx: Cx, kind: Arc<KindEntry<A>>, slot: Slot, now: Timestamp) -> Rc<Self> {
        Rc::new(Self {
            cx,
            kind,
            slot,
            actor: RefCell::new(None),
            mailbox: Mailbox::new(),
            made: ticks(now),
            last_used: Cell::new(ticks(now)),
            kept_until: Cell::new(0),
            reads: Cell::new(0),
            phase: Cell::new(Phase::Starting),
            exclusive: Cell::new(false),
            scheduled: Cell::new(false),
            watched: Cell::new(false),
            asked_to_end: Cell::new(None),
            is_stale: Cell::new(false),
        })
    }

    /// Begins a turn for `envelope`.
    fn begin(self: &Rc<Self>, shard: &Shard, access: Access, envelope: Envelope<Message<A>>, queued: Option<Duration>) {
        let Envelope { body, deadline, chain } = envelope;
        let message = match body {
            Body::Typed(message) => message,
            Body::Wire(call) => {
                let WireCall { method, payload, reply } = *call;
                match decode::<A>(method, &payload, reply) {
                    Some(message) => message,
                    None => return,
                }
            }
            Body::Ended(ended) => return self.begin_ended(shard, *ended),
            Body::Tick(tick) => return self.begin_tick(shard, access, tick.0, tick.1),
        };
        self.begin_typed(shard, access, message, deadline, chain, queued);
    }

    fn begin_typed(
        self: &Rc<Self>,
        shard: &Shard,
        access: Access,
        mut message: Message<A>,
        deadline: Timestamp,
        chain: Chain,
        queued: Option<Duration>,
    ) {
        let method = A::Interface::method(&message);
        let reply = A::Interface::reply(&mut message);
        let Some(call) = shard.call_in_time(&self.cx.id, method, reply, deadline, queued) else { return };
        if chain.baggage.as_ref().is_some_and(|baggage| baggage.tick.is_some()) {
            return self.begin_reminded(shard, access, message, deadline, chain);
        }
        shard.note_waited(self.cx.id.kind, method, queued);
        self.begin_turn(shard, access, message, deadline, Caller::Apart { chain, call }, queued);
    }

    /// Begins a turn, whose time has not run out, while the lease has not.
    fn begin_turn(
        self: &Rc<Self>,
        shard: &Shard,
        access: Access,
        message: Message<A>,
        deadline: Timestamp,
        caller: Caller,
        queued: Option<Duration>,
    ) -> Begun {
        if self.kind.interceptors().is_some() || watched::spans_are_read() {
            return self.begin_watched(shard, access, message, (deadline, queued), caller);
        }
        let (job, turn) = self.turn(shard, access, message);
        shard.begin_turn(self.clone(), job, deadline, caller, turn)
    }

    /// Makes a turn that has been let through. It is made here for all, so that the compiler may put the handler's code
    /// right into it.
    #[inline(always)]
    #[expect(clippy::await_holding_refcell_ref, reason = "turns are admitted by the same rules as borrows")]
    pub(super) fn turn(self: &Rc<Self>, shard: &Shard, access: Access, mut message: Message<A>) -> (Job, LocalFuture) {
        self.last_used.set(ticks(shard.now()));
        let method = A::Interface::method(&message);
        shard.count_turn(self.cx.id.kind, self.kind.place(), method);
        if let Some(gate) = self.kind.gate() {
            gate.enter();
        }
        if access == Access::Exclusive && A::OPTIONS.saving == Saving::EachTurn {
            A::Interface::reply(&mut message).hold();
        }
        let this = self.clone();
        let turn: LocalFuture = match access {
            Access::Exclusive => {
                self.exclusive.set(true);
                boxed(|| async move {
                    loop {
                        if let Some(actor) = &mut *this.actor.borrow_mut() {
                            actor.exclusive(&this.cx, message).await;
                            if A::OPTIONS.saving != Saving::Explicit {
                                this.turn_done(actor).await;
                            }
                        }
                        let Some(following) = this.following() else { break };
                        message = following;
                    }
                })
            }
            Access::Read => {
                self.reads.set(self.reads.get() + 1);
                boxed(|| async move {
                    if let Some(actor) = &*this.actor.borrow() {
                        actor.read(&this.cx, message).await;
                    }
                })
            }
        };
        (Job { access, method }, turn)
    }

    pub(super) fn waiting_len(&self) -> usize {
        self.mailbox.len()
    }

    pub(super) fn idle(&self) -> bool {
        !self.exclusive.get() && self.reads.get() == 0
    }
}

/// Puts a turn into a box. Its place is there before it is made, so that it is made right there, and nothing is copied.
#[inline(always)]
fn boxed<F: Future<Output = ()> + 'static>(make: impl FnOnce() -> F) -> LocalFuture {
    let turn = Box::write(Box::<F>::new_uninit(), make());
    Box::into_pin(turn)
}

pub(super) fn decode<A: Behaviour>(method: u16, payload: &[u8], reply: WireReply) -> Option<Message<A>> {
    match A::Interface::decode(method, payload, reply) {
        Ok(message) => Some(message),
        Err(failed) => {
            let (error, reply) = *failed;
            reply.finish(Completion::Failed(Box::new(crate::actor::reply::invalid(&error).into())));
            None
        }
    }
}

fn fail<A: Behaviour>(envelope: Envelope<Message<A>>, failure: Failure) {
    let end = RuntimeEnd(Completion::Failed(Box::new(failure)));
    match envelope.body {
        Body::Typed(mut message) => A::Interface::reply(&mut message).take().finish(end),
        Body::Wire(call) => call.reply.finish(end.0),
        Body::Ended(_) => {}
        Body::Tick(tick) => tick.0.reply.finish(end.0),
    }
}

/// What a caller hears of a panic.
pub(super) fn panicked(message: &str) -> Failure {
    Doubt::Panicked { message: message.to_owned() }.into()
}

pub(super) fn ticks(now: Timestamp) -> u32 {
    (now.as_nanos() / NANOS_PER_TICK) as u32
}

fn moment(ticks: u32) -> Timestamp {
    Timestamp::from_nanos(u64::from(ticks) * NANOS_PER_TICK)
}

/// Hundredths of a second: 32 bits of them last for more than a year of uptime.
const NANOS_PER_TICK: u64 = 10_000_000;
/// How far ahead a look at what waits is put down.
const WATCH_MAX: Duration = Duration::from_secs(1);
