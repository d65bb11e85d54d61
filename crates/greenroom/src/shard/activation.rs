//! One activation: an actor in memory, its mailbox, and the rules of its turns.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, select};
use greenroom_world::{LocalFuture, Timestamp};

use super::envelope::{Body, Envelope, IncomingCall, WireCall};
use super::failing::is_failure;
use super::frames::{Begun, Caller};
use super::late::{self, HOOK};
use super::mailbox::{Mailbox, Since};
use super::ticking::Mark;
use super::turns::{Access, Chain, Job, Link};
use super::{Shard, Slot, watched};
use crate::actor::cx::Cx;
use crate::actor::error::{Doubt, Failure, Refusal};
use crate::actor::interface::{Behaviour, Interface, Message, Why};
use crate::actor::key::ActorId;
use crate::actor::reply::{RuntimeEnd, WireReply, refused};
use crate::actor::spent::Spent;
use crate::node::kinds::KindEntry;
use crate::pids::Ended;
use crate::pids::key::dead;
use crate::shard::calls::Completion;
use crate::state::{Held, Saving};

/// An activation whose actor's type is not known.
pub(crate) trait AnyActivation {
    fn id(&self) -> &ActorId;
    fn slot(&self) -> Slot;

    /// Makes the actor and begins the `activated` hook.
    fn start(self: Rc<Self>, shard: &Shard) -> Result<(), Refusal>;

    /// Takes an `Option<Envelope<Message>>` of its own message type out of `parcel`, unless it has ended: then the
    /// envelope stays.
    fn offer(self: Rc<Self>, shard: &Shard, parcel: &mut dyn Any) -> Result<(), Refusal>;

    /// Whether a turn of `access` could begin now, with nothing before it.
    fn is_free(&self, access: Access) -> bool;

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

    /// A turn is over; `panic` is the message if it panicked.
    fn turn_ended(self: Rc<Self>, shard: &Shard, job: Job, panic: Option<&str>);

    /// Makes a spawned actor that has failed anew.
    fn restart(self: Rc<Self>, shard: &Shard);

    /// Takes in that an actor that it watches has ended.
    fn notify(self: Rc<Self>, shard: &Shard, ended: Ended);

    /// Whether it has an `ended` hook.
    fn hears(&self) -> bool;

    /// Ends the activation as soon as no turn runs.
    fn end(self: Rc<Self>, shard: &Shard, why: Why);

    /// Keeps the reply of the exclusive turn until its state is saved.
    fn hold(&self, reply: Box<dyn Held>);

    /// Begins a save that is due; says when to look again if it is too early.
    fn check_save(self: Rc<Self>, shard: &Shard, now: Timestamp) -> Option<Timestamp>;

    /// If nothing came for the kind's idle time, ends it; otherwise says when to look again.
    fn check_idle(self: Rc<Self>, shard: &Shard, now: Timestamp) -> Option<Timestamp>;

    /// Refuses what has waited so long that it could not end in time.
    fn check_late(self: Rc<Self>, shard: &Shard, now: Timestamp);

    /// Shows who waits for each message that waits.
    fn each_waiter(&self, look: &mut dyn FnMut(&Link));

    /// The actor and the method with this number, for people.
    fn name_of(&self, method: u16) -> String;

    /// Keeps it from being idle before `until`.
    fn keep(&self, until: Timestamp);

    /// Refuses what waits.
    fn refuse_waiting(&self, refusal: &Refusal);

    /// Messages that wait.
    fn waiting(&self) -> usize;

    /// Whether a turn runs or waits.
    fn busy(&self) -> bool;
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
    mailbox: Mailbox<Envelope<Message<A>>>,
    /// In hundredths of a second of the shard's clock.
    pub(super) last_used: Cell<u32>,
    /// Not idle before this, in the same unit.
    kept_until: Cell<u32>,
    pub(super) reads: Cell<u32>,
    pub(super) phase: Cell<Phase>,
    pub(super) exclusive: Cell<bool>,
    scheduled: Cell<bool>,
    /// Whether a look at what waits is due within a second.
    watched: Cell<bool>,
    pub(super) asked_to_end: Cell<Option<Why>>,
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
            last_used: Cell::new(ticks(now)),
            kept_until: Cell::new(0),
            reads: Cell::new(0),
            phase: Cell::new(Phase::Starting),
            exclusive: Cell::new(false),
            scheduled: Cell::new(false),
            watched: Cell::new(false),
            asked_to_end: Cell::new(None),
        })
    }

    #[expect(clippy::await_holding_refcell_ref, reason = "turns are admitted by the same rules as borrows")]
    pub(super) fn begin_start(self: &Rc<Self>, shard: &Shard) -> Result<(), Refusal> {
        self.phase.set(Phase::Starting);
        let created = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.kind.create(&self.cx)));
        let actor = match created.unwrap_or_else(|panic| Err(super::panic_message(&*panic))) {
            Ok(actor) => actor,
            Err(message) => {
                self.fail_start(shard, &message);
                return Err(Refusal::Activation { message });
            }
        };
        *self.actor.borrow_mut() = Some(actor);
        if !A::ACTIVATED && !Self::LOADS {
            self.phase.set(Phase::Ready);
            return Ok(());
        }
        self.exclusive.set(true);
        let this = self.clone();
        let hook = Box::pin(async move {
            let result = match &mut *this.actor.borrow_mut() {
                Some(actor) => this.wake_up(actor).await,
                None => Ok(()),
            };
            // To end at once would send those who wait to the next activation, and that one to the next.
            let result = match this.asked_to_end.get() {
                Some(Why::Asked) => result.and(Err("it asked to end as it was activated".to_owned())),
                _ => result,
            };
            match result {
                Ok(()) => this.phase.set(Phase::Ready),
                Err(message) => Shard::with(|shard| {
                    if let Some(shard) = shard {
                        this.fail_start(shard, &message);
                    }
                }),
            }
        });
        shard.begin_turn(self.clone(), HOOK, Timestamp::NEVER, Caller::NOBODY, hook);
        match self.phase.get() {
            // The hook has failed without waiting for anything.
            Phase::Gone => Err(Refusal::Activation { message: shard.failed_start.take() }),
            _ => Ok(()),
        }
    }

    async fn wake_up(&self, actor: &mut A) -> Result<(), String> {
        if Self::LOADS {
            actor.load(&self.cx).await.map_err(|error| error.to_string())?;
        }
        actor.activated(&self.cx).await
    }

    fn fail_start(self: &Rc<Self>, shard: &Shard, message: &str) {
        if self.kind.is_spawned() {
            tracing::warn!(actor = %self.cx.id, message, "a spawned actor could not be activated");
            return self.fail(shard, Why::Failed);
        }
        self.left_mailbox(self.waiting());
        let waiting = self.mailbox.take();
        shard.failed_start.set(message.to_owned());
        self.gone(shard);
        for envelope in waiting {
            self.refuse(envelope, Refusal::Activation { message: message.to_owned() });
        }
    }

    /// Whether a turn of `access` may begin now, with nothing before it.
    fn free_for(&self, access: Access) -> bool {
        !self.exclusive.get() && (access == Access::Read || self.reads.get() == 0)
    }

    /// How a message's turn shares the activation.
    fn access_of(body: &Body<Message<A>>) -> Access {
        match body {
            Body::Typed(message) => Self::access(A::Interface::method(message)),
            Body::Wire(call) => Self::access(call.method),
            Body::Tick(tick) => Self::access(tick.0.method),
            Body::Ended(_) => Access::Exclusive,
        }
    }

    fn access(method: u16) -> Access {
        match <A::Interface as Interface>::METHODS.get(usize::from(method)) {
            Some(method) if method.read => Access::Read,
            _ => Access::Exclusive,
        }
    }

    /// Whether the message can begin at once; if not, whether it may wait.
    fn admit(&self, shard: &Shard, access: Access, chain: &Chain) -> Result<Admission, Failure> {
        match self.phase.get() {
            Phase::Gone => return Ok(Admission::TooLate),
            Phase::Ending => return self.admit_to_wait(),
            Phase::Starting | Phase::Ready => {}
        }
        if let Some(gate) = self.kind.gate().filter(|gate| gate.is_full()) {
            return Err(gate.refusal(self.cx.kind(), shard.port.node.name()).into());
        }
        let first = self.mailbox.is_empty();
        let ready = self.phase.get() == Phase::Ready;
        if ready && first && self.free_for(access) {
            return Ok(Admission::Begin);
        }
        // It cannot begin at once. If what keeps it waits for it in turn, it never could.
        if let Some(path) = shard.cycle(&chain.link, &self.cx.id) {
            // A read beside the reads that wait for it may overtake writes that wait for those reads.
            return match access {
                Access::Read if ready && !self.exclusive.get() => Ok(Admission::Begin),
                _ => Err(Failure::Cycle(path)),
            };
        }
        self.admit_to_wait()
    }

    fn admit_to_wait(&self) -> Result<Admission, Failure> {
        if self.waiting() >= self.kind.mailbox_len_max() {
            let queue = format!("the mailbox of {}", self.cx.id);
            return Err(Refusal::Overloaded { queue, bound: self.kind.mailbox_len_max() as u64 }.into());
        }
        Ok(Admission::Wait)
    }

    pub(super) fn enqueue(self: &Rc<Self>, shard: &Shard, envelope: Envelope<Message<A>>) {
        let now = shard.now();
        let deadline = envelope.deadline;
        if let Some(gate) = self.kind.gate() {
            gate.enter();
        }
        self.mailbox.push(Since::at(now), envelope);
        if deadline != Timestamp::NEVER {
            self.watch(shard, late::last_moment(Duration::ZERO, now, deadline));
        }
        if self.phase.get() == Phase::Ready {
            self.schedule(shard);
        }
    }

    fn left_mailbox(&self, messages: usize) {
        if let Some(gate) = self.kind.gate() {
            gate.leave(messages);
        }
    }

    /// Looks at what waits at `due`, or sooner: at most a second ahead, so that an activation has few looks outstanding.
    fn watch(&self, shard: &Shard, due: Timestamp) {
        let far = shard.now() + WATCH_MAX;
        if due < far {
            shard.watch(self.slot, due);
        } else if !self.watched.replace(true) {
            shard.watch(self.slot, far);
        }
    }

    pub(super) fn schedule(self: &Rc<Self>, shard: &Shard) {
        if !self.scheduled.replace(true) {
            shard.schedule(self.clone());
        }
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
        // Turns before it in this round may have taken their time: so the clock is asked, not the round.
        if deadline != Timestamp::NEVER && deadline <= shard.clock() {
            let refusal = shard.expired(Spent { queued, ..Spent::default() });
            return A::Interface::reply(&mut message).take().finish(refused(refusal));
        }
        if !shard.fence_open() {
            return A::Interface::reply(&mut message).take().finish(refused(Refusal::Fenced));
        }
        let call = A::Interface::reply(&mut message).key().0;
        if shard.gives_up(call) {
            return A::Interface::reply(&mut message).disarm();
        }
        self.begin_turn(shard, access, message, deadline, Caller::Apart { chain, call });
    }

    /// Begins a turn, whose time has not run out, while the lease has not.
    fn begin_turn(
        self: &Rc<Self>,
        shard: &Shard,
        access: Access,
        message: Message<A>,
        deadline: Timestamp,
        caller: Caller,
    ) -> Begun {
        if self.kind.interceptors().is_some() || watched::spans_are_read() {
            return self.begin_watched(shard, access, message, deadline, caller);
        }
        let (job, turn) = self.turn(shard, access, message);
        shard.begin_turn(self.clone(), job, deadline, caller, turn)
    }

    /// Makes a turn that has been let through. It is made here for all, so that the compiler may put the handler's code
    /// right into it.
    #[inline]
    #[expect(clippy::await_holding_refcell_ref, reason = "turns are admitted by the same rules as borrows")]
    pub(super) fn turn(self: &Rc<Self>, shard: &Shard, access: Access, mut message: Message<A>) -> (Job, LocalFuture) {
        self.last_used.set(ticks(shard.now()));
        shard.count_turn();
        if let Some(gate) = self.kind.gate() {
            gate.enter();
        }
        let method = A::Interface::method(&message);
        if access == Access::Exclusive && A::OPTIONS.saving == Saving::EachTurn {
            A::Interface::reply(&mut message).hold();
        }
        let this = self.clone();
        let turn: LocalFuture = match access {
            Access::Exclusive => {
                self.exclusive.set(true);
                Box::pin(async move {
                    if let Some(actor) = &mut *this.actor.borrow_mut() {
                        actor.exclusive(&this.cx, message).await;
                        if A::OPTIONS.saving != Saving::Explicit {
                            this.turn_done(actor).await;
                        }
                    }
                })
            }
            Access::Read => {
                self.reads.set(self.reads.get() + 1);
                Box::pin(async move {
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

    /// Begins the end, as no turn runs.
    #[expect(clippy::await_holding_refcell_ref, reason = "turns are admitted by the same rules as borrows")]
    fn begin_end(self: &Rc<Self>, shard: &Shard, why: Why) {
        if self.phase.get() != Phase::Ready {
            return;
        }
        if self.kind.is_spawned() && is_failure(why) {
            return self.fail(shard, why);
        }
        // Whoever it matters to is told why.
        self.asked_to_end.set(Some(why));
        if why == Why::Killed {
            return self.finish_end(shard);
        }
        let saves = why != Why::Unsaved && self.saves_late();
        if !(A::DEACTIVATING || saves || self.is_unsettled()) || !shard.fence_open() {
            return self.finish_end(shard);
        }
        self.phase.set(Phase::Ending);
        self.exclusive.set(true);
        self.last_used.set(ticks(shard.now()));
        shard.look_again(self.slot, shard.now() + shard.port().node.config().deactivating_timeout);
        let this = self.clone();
        let hook = Box::pin(async move {
            if let Some(actor) = &mut *this.actor.borrow_mut() {
                {
                    let end = pin!(async {
                        actor.deactivating(&this.cx, why).await;
                        if saves {
                            this.save_late(actor).await;
                        }
                    });
                    this.end_in_time(end).await;
                }
                this.settle(actor).await;
            }
        });
        shard.begin_turn(self.clone(), HOOK, Timestamp::NEVER, Caller::NOBODY, hook);
    }

    /// If the `deactivating` hook has had its time, ends the activation without it; otherwise says when to look again.
    fn check_end(self: Rc<Self>, shard: &Shard, now: Timestamp) -> Option<Timestamp> {
        let due = moment(self.last_used.get()) + shard.port().node.config().deactivating_timeout;
        if due > now {
            return Some(due);
        }
        tracing::error!(actor = %self.cx.id, "the deactivating hook does not end; the activation ends without it");
        let this: Rc<dyn AnyActivation> = self.clone();
        shard.cut_turns(&this);
        self.exclusive.set(false);
        self.finish_end(shard);
        None
    }

    /// An end that is stuck would keep the actor from ever answering again.
    async fn end_in_time(&self, end: impl Future<Output = ()> + Unpin) {
        let node = &self.cx.port.node;
        let limit = node.config().stop_timeout;
        let late = node.world().sleep_until(node.world().now() + limit);
        if let Either::Right(_) = select(end, late).await {
            tracing::warn!(actor = %self.cx.id, ?limit, "the deactivation took too long and is given up");
        }
    }

    /// Leaves, and sends what still waits to the actor's next activation.
    pub(super) fn finish_end(self: &Rc<Self>, shard: &Shard) {
        self.left_mailbox(self.waiting());
        let waiting = self.mailbox.take();
        self.gone(shard);
        for envelope in waiting {
            match envelope.body {
                // Timers go with their activation.
                Body::Tick(_) => {}
                Body::Ended(_) => {}
                _ if self.kind.is_spawned() => self.refuse(envelope, dead(&self.cx.id)),
                _ => shard.resubmit::<A::Interface>(&self.cx.id, envelope),
            }
        }
    }

    fn gone(self: &Rc<Self>, shard: &Shard) {
        if self.phase.replace(Phase::Gone) != Phase::Gone {
            let why = self.asked_to_end.take().unwrap_or(Why::Failed);
            shard.forget(self.slot, &self.cx.id, self.cx.epoch, self.kind.workers(), why);
        }
    }
}

/// What becomes of a message.
enum Admission {
    Begin,
    Wait,
    TooLate,
}

impl<A: Behaviour> AnyActivation for Activation<A> {
    fn id(&self) -> &ActorId {
        &self.cx.id
    }

    fn slot(&self) -> Slot {
        self.slot
    }

    fn start(self: Rc<Self>, shard: &Shard) -> Result<(), Refusal> {
        self.begin_start(shard)
    }

    fn offer(self: Rc<Self>, shard: &Shard, parcel: &mut dyn Any) -> Result<(), Refusal> {
        let Some(parcel) = parcel.downcast_mut::<Option<Envelope<Message<A>>>>() else {
            let message = format!("kind {:?} has another interface here", self.cx.kind());
            return Err(Refusal::Invalid { field: String::new(), message });
        };
        let Some(envelope) = parcel.as_ref() else { return Ok(()) };
        let access = Self::access_of(&envelope.body);
        match self.admit(shard, access, &envelope.chain) {
            Ok(Admission::TooLate) => {}
            Ok(Admission::Begin) if shard.may_begin_inline() => {
                if let Some(envelope) = parcel.take() {
                    self.begin(shard, access, envelope, None);
                }
            }
            Ok(Admission::Begin | Admission::Wait) => {
                if let Some(envelope) = parcel.take() {
                    self.enqueue(shard, envelope);
                }
            }
            Err(Failure::Refused(refusal)) => return Err(refusal),
            Err(failure) => {
                if let Some(envelope) = parcel.take() {
                    fail::<A>(envelope, failure);
                }
            }
        }
        Ok(())
    }

    fn is_free(&self, access: Access) -> bool {
        let first = self.mailbox.is_empty();
        let admits = self.kind.gate().is_none_or(|gate| !gate.is_full());
        first && admits && self.phase.get() == Phase::Ready && self.free_for(access)
    }

    fn begin_here(
        self: Rc<Self>,
        shard: &Shard,
        access: Access,
        message: &mut dyn Any,
        deadline: Timestamp,
        caller: Caller,
    ) -> Option<Begun> {
        let message = message.downcast_mut::<Option<Message<A>>>()?.take()?;
        Some(self.begin_turn(shard, access, message, deadline, caller))
    }

    fn offer_wire(self: Rc<Self>, shard: &Shard, call: IncomingCall<'_>) -> Result<(), (Option<Refusal>, WireReply)> {
        let IncomingCall { method, payload, reply, deadline, chain } = call;
        let access = Self::access(method);
        match self.admit(shard, access, &chain) {
            Ok(Admission::TooLate) => return Err((None, reply)),
            Ok(Admission::Begin) if shard.may_begin_inline() => {
                if let Some(message) = decode::<A>(method, payload, reply) {
                    self.begin_typed(shard, access, message, deadline, chain, None);
                }
            }
            Ok(Admission::Begin | Admission::Wait) => {
                let call = WireCall { method, payload: Bytes::copy_from_slice(payload), reply };
                let body = Body::Wire(Box::new(call));
                self.enqueue(shard, Envelope { body, deadline, chain });
            }
            Err(Failure::Refused(refusal)) => return Err((Some(refusal), reply)),
            Err(failure) => reply.finish(Completion::Failed(Box::new(failure))),
        }
        Ok(())
    }

    fn offer_tick(self: Rc<Self>, shard: &Shard, call: WireCall, mark: Mark) {
        self.take_tick(shard, call, mark);
    }

    fn run(self: Rc<Self>, shard: &Shard) {
        self.scheduled.set(false);
        for _ in 0..TURNS_A_VISIT {
            if self.phase.get() != Phase::Ready {
                return;
            }
            if self.mailbox.is_empty() {
                break;
            }
            let next = self.mailbox.pop_if(|first| {
                let access = Self::access_of(&first.body);
                self.free_for(access).then_some(access)
            });
            let Some((access, since, envelope)) = next else { return };
            self.left_mailbox(1);
            self.begin(shard, access, envelope, Some(since.elapsed(shard.now())));
        }
        if self.waiting() > 0 {
            self.schedule(shard);
        } else if let (true, Some(why)) = (self.idle(), self.asked_to_end.take()) {
            self.begin_end(shard, why);
        }
    }

    fn turn_ended(self: Rc<Self>, shard: &Shard, job: Job, panic: Option<&str>) {
        if job.method != HOOK.method
            && let Some(gate) = self.kind.gate()
        {
            gate.leave(1);
        }
        match job.access {
            Access::Exclusive => self.exclusive.set(false),
            Access::Read => self.reads.set(self.reads.get() - 1),
        }
        match self.phase.get() {
            Phase::Ending => return self.finish_end(shard),
            Phase::Starting => {
                if let Some(message) = panic {
                    self.fail_start(shard, &format!("it panicked: {message}"));
                } else if self.asked_to_end.get() == Some(Why::Killed) {
                    self.finish_end(shard);
                }
                return;
            }
            Phase::Gone => return,
            Phase::Ready => {}
        }
        if panic.is_some() && self.idle() {
            if self.kind.is_spawned() {
                return self.fail(shard, Why::Panicked);
            }
            shard.part_from_kin(self.slot);
            // A failure has been told to all who wait.
            let _ = self.begin_start(shard);
        } else if panic.is_some() && self.asked_to_end.get().is_none() {
            // Other reads still look at the actor: it is replaced when they are done.
            self.asked_to_end.set(Some(Why::Panicked));
        }
        if self.idle()
            && let Some(why) = self.asked_to_end.take()
        {
            return self.begin_end(shard, why);
        }
        if !self.mailbox.is_empty() {
            self.schedule(shard);
        }
    }

    fn end(self: Rc<Self>, shard: &Shard, why: Why) {
        if self.phase.get() == Phase::Ready && self.idle() {
            return self.begin_end(shard, why);
        }
        self.ask_to_end(shard, why);
    }

    fn restart(self: Rc<Self>, shard: &Shard) {
        self.begin_again(shard);
    }

    fn notify(self: Rc<Self>, shard: &Shard, ended: Ended) {
        self.take_news(shard, ended);
    }

    fn hears(&self) -> bool {
        A::ENDED
    }

    fn hold(&self, reply: Box<dyn Held>) {
        match &self.cx.state {
            Some(state) => state.holder.hold(reply),
            None => reply.release(),
        }
    }

    fn check_save(self: Rc<Self>, shard: &Shard, now: Timestamp) -> Option<Timestamp> {
        self.save_if_due(shard, now)
    }

    fn check_idle(self: Rc<Self>, shard: &Shard, now: Timestamp) -> Option<Timestamp> {
        match self.phase.get() {
            Phase::Gone => return None,
            Phase::Ending => return self.check_end(shard, now),
            Phase::Starting | Phase::Ready => {}
        }
        let due = (moment(self.last_used.get()) + self.kind.idle()).max(moment(self.kept_until.get()));
        if due > now {
            // What keeps it may be taken back: each is looked at once an idle time.
            return Some(due.min(now + self.kind.idle()));
        }
        if self.phase.get() != Phase::Ready
            || !self.idle()
            || self.waiting() > 0
            || shard.has_children(self.slot)
            || shard.is_tied(self.slot)
        {
            return Some(now + self.kind.idle());
        }
        self.begin_end(shard, Why::Idle);
        None
    }

    fn check_late(self: Rc<Self>, shard: &Shard, now: Timestamp) {
        self.watched.set(false);
        let is_late = |since: Since, envelope: &Envelope<Message<A>>| {
            late::last_moment(since.elapsed(now), now, envelope.deadline) <= now
        };
        let late = self.mailbox.take_late(is_late);
        if !late.is_empty() {
            self.left_mailbox(late.len());
            let behind = shard.behind(self.slot);
            for (place, since, envelope) in late {
                let queued = since.elapsed(now);
                let limit = queued + envelope.deadline.since(now);
                let (queued, limit) = (Some(queued), Some(limit));
                let spent = Spent { queued, limit, behind: behind.clone(), ahead: place as u64, ..Spent::default() };
                self.refuse(envelope, shard.expired(spent));
            }
        }
        let next = self.mailbox.least(|since, envelope| late::last_moment(since.elapsed(now), now, envelope.deadline));
        if let Some(next) = next.filter(|next| *next != Timestamp::NEVER) {
            self.watch(shard, next);
        }
    }

    fn each_waiter(&self, look: &mut dyn FnMut(&Link)) {
        self.mailbox.each(|envelope| look(&envelope.chain.link));
    }

    fn name_of(&self, method: u16) -> String {
        let hook = match self.phase.get() {
            Phase::Starting => "activating",
            Phase::Ready => "saving",
            Phase::Ending | Phase::Gone => "deactivating",
        };
        match <A::Interface as Interface>::METHODS.get(usize::from(method)) {
            Some(method) => format!("{}.{}", self.cx.id, method.name),
            None => format!("{} ({hook})", self.cx.id),
        }
    }

    fn keep(&self, until: Timestamp) {
        self.kept_until.set(ticks(until));
    }

    fn refuse_waiting(&self, refusal: &Refusal) {
        self.left_mailbox(self.waiting());
        for envelope in self.mailbox.take() {
            self.refuse(envelope, refusal.clone());
        }
    }

    fn waiting(&self) -> usize {
        self.mailbox.len()
    }

    fn busy(&self) -> bool {
        !self.idle()
    }
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
/// Turns that an activation begins before others of its shard have their go.
const TURNS_A_VISIT: usize = 32;
