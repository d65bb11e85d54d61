//! Turns on the stack: how one begins, is polled and ends.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use greenroom_protocols::gsi::ClusterId;
use greenroom_protocols::node::NodeId;
use greenroom_world::{LocalFuture, Timestamp};

use super::activation::{self, HasTurns};
use super::baggage::{Baggage, Load};
use super::calls::{CallSlot, Completion, Waiter};
use super::cancel::CallKey;
use super::chain::{Chain, Link, WaitingTurn};
use super::holdback::Holdback;
use super::turns::{Answer, Frame, Job, Turn, TurnId};
use super::{Shard, Slot, panic_message, registry};
use crate::actor::error::{CallError, Doubt, Failure, Refusal};
use crate::actor::interface::{Portable, Why};
use crate::actor::key::ActorId;
use crate::actor::migration::Unmoved;
use crate::actor::reply::{self, RuntimeEnd};
use crate::context::TraceContext;
use crate::state::Held;

/// Who began a turn.
pub(crate) enum Caller {
    /// Nobody on this stack waits for it: what came with its message, and the call that it serves.
    Apart { chain: Chain, call: CallKey },
    /// The turn below on the stack awaits the reply that has this serial number: an `Option<Result<_, _>>` of its own.
    Below { serial: u64, answer: *mut (), baggage: Load },
}

/// What has become of a turn at its first poll.
pub(crate) enum Begun {
    /// It is over, or has answered already.
    Over,
    /// It waits; the reply comes to this call.
    Waits(CallSlot),
    /// It will not answer.
    Failed(Box<Failure>),
}

impl Caller {
    /// Nobody.
    pub(super) const NOBODY: Self = Self::Apart { chain: Chain::NONE, call: CallKey::NONE };

    /// Whether nobody waits for the turn and nothing came with its message.
    fn is_nobody(&self) -> bool {
        matches!(self, Self::Apart { chain, call } if chain.is_none() && call.is_none())
    }
}

impl Shard {
    /// Whether a turn may begin on the stack of who calls.
    #[inline]
    pub(super) fn may_begin_inline(&self) -> bool {
        self.depth.get() < DEPTH_MAX && (self.budget.get() > 0 || self.renew_budget())
    }

    /// Lets the next poll begin turns on its stack.
    pub(crate) fn refill_budget(&self) {
        self.budget.set(BUDGET);
        self.renewals.set(RENEWALS_MAX);
    }

    /// Lets the poll begin more turns on its stack, if those that it has begun were quick.
    #[cold]
    fn renew_budget(&self) -> bool {
        let renewals = self.renewals.replace(0);
        if renewals == 0 {
            return false;
        }
        let now = self.port.node.world().now();
        if renewals == RENEWALS_MAX {
            self.spending_since.set(now);
        } else if now.since(self.spending_since.get()) > SPENDING_MAX {
            return false;
        }
        self.renewals.set(renewals - 1);
        self.budget.set(BUDGET);
        true
    }

    /// A number that no other reply of this shard has.
    pub(super) fn next_serial(&self) -> u64 {
        self.serial.set(self.serial.get() + 1);
        self.serial.get()
    }

    /// Begins a turn with its first poll.
    pub(super) fn begin_turn(
        &self,
        activation: Rc<dyn HasTurns>,
        job: Job,
        deadline: Timestamp,
        caller: Caller,
        future: LocalFuture,
    ) -> Begun {
        self.budget.set(self.budget.get().saturating_sub(1));
        let id = self.turns.borrow_mut().begin();
        let timed = self.times_turn();
        let more = self.runs.more.take();
        // What is timed is one turn: no other one follows in its frame.
        let more = if timed == Timestamp::NEVER { more } else { 0 };
        let bare = deadline == Timestamp::NEVER && caller.is_nobody();
        let (link, baggage, serial, answer) = match caller {
            Caller::Apart { chain: Chain { link, baggage }, call } => (Some(link), baggage, 0, Answer::Elsewhere(call)),
            Caller::Below { serial, answer, baggage } => (None, baggage, serial, Answer::Stack(answer)),
        };
        let frame = Frame {
            id,
            activation,
            job: Cell::new(job),
            deadline,
            serial,
            answer: Cell::new(answer),
            link: Cell::new(link),
            baggage: Cell::new(baggage),
            entered: Cell::new(false),
            bare,
            timed,
            more: Cell::new(more),
            below: Cell::new(self.frame.get()),
        };
        #[cfg(feature = "rehearsal")]
        self.note_begin(&frame);
        self.poll_frame(&frame, future)
    }

    /// Polls a turn that was asked for it.
    pub(super) fn resume_turn(&self, id: TurnId) {
        let resumed = self.turns.borrow_mut().resume(id);
        if let Some((frame, future)) = resumed {
            frame.below.set(self.frame.get());
            self.poll_frame(&frame, future);
        }
    }

    fn poll_frame(&self, frame: &Frame, mut future: LocalFuture) -> Begun {
        self.frame.set(frame);
        self.depth.set(self.depth.get() + 1);
        let waker = registry::waker(self.here.id, frame.id);
        let mut poll =
            || panic::catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut Context::from_waker(&waker))));
        let polled = if self.watch.is_due() { self.timed(frame, poll) } else { poll() };
        self.depth.set(self.depth.get() - 1);
        self.runs.more.set(frame.more.get());
        match polled {
            Ok(Poll::Ready(())) => {
                // Its reply, if it was never given, still finds its frame.
                drop(future);
                self.frame.set(frame.below.get());
                self.end_turn(frame, None);
                Begun::Over
            }
            Ok(Poll::Pending) => {
                self.write_down(frame);
                self.frame.set(frame.below.get());
                let begun = self.await_below(frame);
                if self.turns.borrow_mut().park(frame, future) {
                    self.ready.borrow_mut().push_back(frame.id);
                }
                begun
            }
            Err(payload) => {
                let message = panic_message(&*payload);
                drop(future);
                self.frame.set(frame.below.get());
                self.panicked(frame, &message)
            }
        }
    }

    /// If the turn below waits for `frame`'s reply, gives that a place that outlives the stack.
    fn await_below(&self, frame: &Frame) -> Begun {
        let Answer::Stack(_) = frame.answer.get() else { return Begun::Over };
        let opened = self.open_call(frame.deadline);
        match opened {
            // The current turn is the one below again: it is the one that is woken.
            Ok(call) => {
                frame.answer.set(Answer::Call(call));
                Begun::Waits(call)
            }
            Err(_) => {
                frame.answer.set(Answer::Elsewhere(CallKey::NONE));
                Begun::Failed(Box::new(Doubt::Dropped.into()))
            }
        }
    }

    fn panicked(&self, frame: &Frame, message: &str) -> Begun {
        let answer = frame.answer.replace(Answer::Elsewhere(CallKey::NONE));
        self.end_turn(frame, Some(message));
        let failure = || Box::new(activation::panicked(message));
        for orphan in self.orphans.take() {
            orphan.finish(RuntimeEnd(Completion::Failed(failure())));
        }
        match answer {
            Answer::Elsewhere(_) => Begun::Over,
            Answer::Stack(_) => Begun::Failed(failure()),
            Answer::Call(call) => {
                self.complete(call, Completion::Failed(failure()));
                Begun::Over
            }
        }
    }

    fn end_turn(&self, frame: &Frame, panic: Option<&str>) {
        if frame.entered.get() || frame.timed != Timestamp::NEVER || panic.is_some() {
            self.end_known(frame, panic);
        } else {
            self.turns.borrow_mut().free(frame.id);
        }
        #[cfg(feature = "rehearsal")]
        self.note_end(frame, panic);
        frame.activation.clone().turn_ended(self, frame.job.get(), panic);
    }

    /// Ends a turn of which something is known, or is to be.
    fn end_known(&self, frame: &Frame, panic: Option<&str>) {
        let known = self.turns.borrow_mut().end(frame.id);
        // What else it holds is dropped while nobody borrows the turns.
        let known = known.map(|turn| (turn.began, turn.link));
        if let Some(message) = panic {
            self.note_broken(frame, known.as_ref(), message);
            tracing::error!(actor = %frame.activation.id(), message, "a turn panicked; the activation restarts clean");
        }
        if frame.timed != Timestamp::NEVER {
            self.note_took(frame, known.as_ref());
        } else if let Some((began, _)) = &known {
            self.look_at_ended(frame, self.now().since(*began), known.as_ref());
        }
    }

    /// Writes the turn of `frame` into the slab, and those that wait for it.
    fn write_down(&self, frame: &Frame) {
        if frame.entered.replace(true) {
            return;
        }
        let link = match frame.link.take() {
            Some(link) => link,
            // SAFETY: the frame below is on this stack, under `frame`.
            None => unsafe { frame.below.get().as_ref() }.map_or(Link::None, |below| {
                self.write_down(below);
                Link::Turn(WaitingTurn::new(below.id))
            }),
        };
        let turn = Turn {
            activation: frame.activation.clone(),
            job: frame.job.get(),
            timed: frame.timed,
            began: self.now(),
            told: false,
            link,
            baggage: None,
            deadline: frame.deadline,
            serial: frame.serial,
            answer: Answer::Elsewhere(CallKey::NONE),
            path: None,
        };
        self.turns.borrow_mut().enter(frame.id, turn);
    }

    /// The turn that is being polled.
    pub(super) fn current(&self) -> Option<&Frame> {
        // SAFETY: `poll_frame` sets it to a frame on this stack, and back before that frame goes.
        unsafe { self.frame.get().as_ref() }
    }

    /// The activation whose turn is being polled.
    pub(crate) fn current_slot(&self) -> Option<Slot> {
        self.current().map(|frame| frame.activation.slot())
    }

    /// Drops a turn that waits, unfinished.
    pub(super) fn drop_turn(&self, id: TurnId) {
        let resumed = self.turns.borrow_mut().resume(id);
        if let Some((frame, future)) = resumed {
            frame.below.set(self.frame.get());
            self.frame.set(&frame);
            // Its reply, which it never gave, still finds its frame.
            drop(future);
            self.frame.set(frame.below.get());
            self.end_turn(&frame, None);
        }
    }

    /// The activation of the turn that is being polled.
    pub(super) fn current_activation(&self) -> Option<Rc<dyn HasTurns>> {
        self.current().map(|frame| frame.activation.clone())
    }

    /// Whether a turn is being polled.
    pub(crate) fn in_turn(&self) -> bool {
        !self.frame.get().is_null()
    }

    /// The slot of the current turn's activation, if that is of `id`.
    pub(super) fn current_slot_of(&self, id: &ActorId) -> Option<Slot> {
        let activation = &self.current()?.activation;
        (activation.id() == id).then(|| activation.slot())
    }

    /// The current turn's number, with the turn in the slab.
    pub(super) fn current_turn(&self) -> Option<TurnId> {
        let frame = self.current()?;
        self.write_down(frame);
        Some(frame.id)
    }

    /// Whether the context's waker is the current turn's.
    pub(super) fn waiter(&self, context: &Context<'_>) -> Waiter {
        match self.current() {
            Some(frame) if context.waker().will_wake(&registry::waker(self.here.id, frame.id)) => {
                Waiter::Turn(frame.id)
            }
            _ => Waiter::Waker(context.waker().clone()),
        }
    }

    /// The number of the current turn, which the slab need not know.
    pub(super) fn current_waiter(&self) -> Waiter {
        self.current().map_or(Waiter::None, |frame| Waiter::Turn(frame.id))
    }

    /// What a call of the current turn carries that was given `own`.
    #[inline]
    pub(crate) fn load(&self, own: Option<Box<Baggage>>) -> Result<Load, Refusal> {
        match (self.current().and_then(Frame::baggage), own) {
            (None, None) => Ok(None),
            (inherited, own) => Baggage::join(inherited, own),
        }
    }

    /// What the current turn keeps back until it is committed, if it is one that does.
    #[inline]
    pub(super) fn holdback(&self) -> Option<&Arc<dyn Holdback>> {
        self.current().and_then(Frame::baggage)?.holdback.as_ref()
    }

    /// What the current turn's message carries.
    pub(crate) fn baggage(&self) -> Load {
        self.current().and_then(Frame::baggage).cloned()
    }

    /// The other cluster that the current turn's call came in at, if it is told.
    pub(crate) fn calling_cluster(&self) -> Option<ClusterId> {
        self.current().and_then(Frame::baggage).and_then(|baggage| baggage.caller)
    }

    /// Changes what the calls of the current turn carry from here on.
    pub(crate) fn carry<E>(&self, change: impl FnOnce(&mut Baggage) -> Result<(), E>) -> Result<(), E> {
        let Some(frame) = self.current() else { return Ok(()) };
        let mut baggage = frame.baggage.take().unwrap_or_default();
        let changed = change(Arc::make_mut(&mut baggage));
        frame.baggage.set(Some(baggage));
        changed
    }

    #[inline]
    pub(crate) fn current_deadline(&self) -> Timestamp {
        self.current().map_or(Timestamp::NEVER, |frame| frame.deadline)
    }

    /// What is left of the current turn's time.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        let deadline = self.current_deadline();
        (deadline != Timestamp::NEVER).then(|| deadline.since(self.port.node.world().now()))
    }

    /// Lets the current turn's activation go to another node when it can.
    pub(crate) fn migrate_current(&self, to: NodeId) -> Result<(), Unmoved> {
        let activation = self.current_slot().and_then(|slot| self.activation(slot)).ok_or(Unmoved::NotActive)?;
        self.migrate(&activation, to)
    }

    /// Ends the current turn's activation when it can.
    pub(crate) fn end_current(&self, why: Why) {
        if let Some(frame) = self.current() {
            frame.activation.clone().end(self, why);
        }
    }

    /// Keeps the current turn's activation from being idle for `time`.
    pub(crate) fn keep_current(&self, time: Duration) {
        if let Some(frame) = self.current() {
            frame.activation.keep(self.now() + time);
        }
    }

    /// Lets the actor of the current turn stay on this node for `time`.
    pub(crate) fn pin_current(&self, time: Duration) {
        if let Some(frame) = self.current() {
            self.note_pinned(frame.activation.id(), self.now() + time);
        }
    }

    /// Keeps the reply of the current turn until its state is saved.
    pub(crate) fn hold(&self, reply: Box<dyn Held>) {
        match self.current() {
            Some(frame) => frame.activation.hold(reply),
            None => reply.release(),
        }
    }

    /// Answers the caller of the current turn, if the reply numbered `serial` is that turn's.
    pub(crate) fn answer_below<T: Portable, E: Portable>(&self, serial: u64, result: Result<T, CallError<E>>) {
        let Some(frame) = self.current().filter(|frame| frame.serial == serial) else { return };
        match frame.answer.replace(Answer::Elsewhere(CallKey::NONE)) {
            Answer::Elsewhere(_) => {}
            // SAFETY: `Calling` made the reply with this serial number, for a place of this type; serial numbers are not
            // used again; and the place is there as long as the answer is `Stack`, since its owner's poll is under this one.
            Answer::Stack(place) => unsafe { *place.cast::<Option<Result<T, CallError<E>>>>() = Some(result) },
            Answer::Call(call) => self.complete(call, reply::completion(result)),
        }
    }
}

/// A turn, as those see it whose code runs in it.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct CurrentTurn {
    /// The actor whose turn it is.
    pub actor: ActorId,
    /// Where it stands in a distributed trace, if its message came as a part of one.
    pub trace: Option<TraceContext>,
}

/// The turn that runs on this thread: for logs that say who has said something. `None` outside of turns.
pub fn current_turn() -> Option<CurrentTurn> {
    Shard::with(|shard| {
        let frame = shard?.current()?;
        let trace = frame.baggage().and_then(|baggage| baggage.trace.clone());
        Some(CurrentTurn { actor: frame.activation.id().clone(), trace })
    })
}

/// Turns that may be on one stack, each called by the one before it.
const DEPTH_MAX: u32 = 16;
/// Turns that one poll may begin on its stack before the shard looks at the clock.
const BUDGET: u32 = 512;
/// How often one poll's budget may be renewed, however quick its turns are.
const RENEWALS_MAX: u32 = 16;
/// Time after which a poll's budget is not renewed: others of the shard have their go.
const SPENDING_MAX: Duration = Duration::from_micros(250);
