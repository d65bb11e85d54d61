//! What the shard asks of an activation whose actor's type it does not know.

use std::any::Any;
use std::rc::Rc;

use bytes::Bytes;
use greenroom_world::Timestamp;

use super::admission::Admission;
use super::{Activation, AnyActivation, HasTurns, Phase, decode, fail, moment, ticks};
use crate::actor::error::{Failure, Refusal};
use crate::actor::interface::{Behaviour, Interface, Message, Why};
use crate::actor::key::ActorId;
use crate::actor::reply::WireReply;
use crate::pids::ended::Ended;
use crate::shard::calls::Completion;
use crate::shard::chain::Link;
use crate::shard::envelope::{Body, Envelope, IncomingCall, WireCall};
use crate::shard::frames::{Begun, Caller};
use crate::shard::inspect::Waiting;
use crate::shard::late::{self, HOOK};
use crate::shard::mailbox::Since;
use crate::shard::seed::Seed;
use crate::shard::submit::other_interface;
use crate::shard::ticking::Mark;
use crate::shard::turns::{Access, Job};
use crate::shard::{Shard, Slot};
use crate::state::Held;

impl<A: Behaviour> HasTurns for Activation<A> {
    fn id(&self) -> &ActorId {
        &self.cx.id
    }

    fn slot(&self) -> Slot {
        self.slot
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
                    self.fail_start(shard, &Refusal::Activation { message: format!("it panicked: {message}") });
                } else if self.asked_to_end.get() == Some(Why::Killed) {
                    self.finish_end(shard);
                }
                return;
            }
            Phase::Gone => return,
            Phase::Ready => {}
        }
        if panic.is_some() && self.asked_to_end.get() == Some(Why::Migrating) {
            // It is broken: what it holds does not travel.
            self.asked_to_end.set(None);
        }
        if panic.is_some() && self.idle() {
            if self.kind.is_spawned() {
                return self.fail(shard, Why::Panicked);
            }
            shard.note_lost(self.slot);
            // A failure has been told to all who wait.
            let _ = self.begin_start(shard, Seed::Fresh, self.next_callers(shard));
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

    fn hold(&self, reply: Box<dyn Held>) {
        match &self.cx.state {
            Some(state) => state.holder.hold(reply),
            None => reply.release(),
        }
    }

    fn keep(&self, until: Timestamp) {
        self.kept_until.set(ticks(until));
    }

    fn end(self: Rc<Self>, shard: &Shard, why: Why) {
        if self.phase.get() == Phase::Ready && self.idle() {
            return self.begin_end(shard, why);
        }
        self.ask_to_end(shard, why);
    }

    fn method_name(&self, method: u16) -> String {
        let hook = match self.phase.get() {
            Phase::Starting => "(activating)",
            Phase::Ready => "(saving)",
            Phase::Ending | Phase::Gone => "(deactivating)",
        };
        self.kind.methods().get(usize::from(method)).map_or(hook, |method| method.name).to_owned()
    }

    fn name_of(&self, method: u16) -> String {
        let name = self.method_name(method);
        if name.starts_with('(') { format!("{} {name}", self.cx.id) } else { format!("{}.{name}", self.cx.id) }
    }

    fn waiting(&self) -> usize {
        self.mailbox.len()
    }

    fn each_waiter(&self, look: &mut dyn FnMut(&Link)) {
        self.mailbox.each(&mut |_, envelope| look(&envelope.chain.link));
    }
}

impl<A: Behaviour> AnyActivation for Activation<A> {
    fn start(self: Rc<Self>, shard: &Shard, seed: Seed, callers: Link) -> Result<(), Refusal> {
        self.begin_start(shard, seed, callers)
    }

    fn offer(self: Rc<Self>, shard: &Shard, parcel: &mut dyn Any) -> Result<(), Refusal> {
        let Some(parcel) = parcel.downcast_mut::<Option<Envelope<Message<A>>>>() else {
            return Err(other_interface(&self.cx.id));
        };
        let Some(envelope) = parcel.as_ref() else { return Ok(()) };
        let access = self.access_of(&envelope.body);
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
            Err(Failure::Refused(refusal)) => {
                if let Some(method) = Self::method_of(&envelope.body) {
                    shard.note_refused(&self.cx.id, method, &refusal);
                }
                return Err(refusal);
            }
            Err(failure) => {
                if let Some(envelope) = parcel.take() {
                    fail::<A>(envelope, failure);
                }
            }
        }
        Ok(())
    }

    fn gather(self: Rc<Self>, shard: &Shard, parcel: &mut dyn Any) -> bool {
        let Some(parcel) = parcel.downcast_mut::<Option<Envelope<Message<A>>>>() else { return false };
        parcel.as_ref().is_some_and(|envelope| self.gathers(envelope))
            && parcel.take().is_some_and(|envelope| {
                self.take_gathered(shard, envelope);
                true
            })
    }

    fn is_free(self: Rc<Self>, shard: &Shard, access: Access) -> bool {
        // Turns in hosts never end on their caller's stack.
        if A::FOREIGN {
            return false;
        }
        if !self.mailbox.is_empty() && self.idle() && !shard.is_rehearsed() && shard.may_begin_inline() {
            self.visit(shard);
        }
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
        Some(self.begin_turn(shard, access, message, deadline, caller, None))
    }

    fn offer_wire(self: Rc<Self>, shard: &Shard, call: IncomingCall<'_>) -> Result<(), (Option<Refusal>, WireReply)> {
        let IncomingCall { method, payload, reply, deadline, chain } = call;
        let access = self.access(method);
        #[cfg(feature = "rehearsal")]
        if shard.is_rehearsed() && chain.baggage.as_ref().is_some_and(|baggage| baggage.tick.is_some()) {
            shard.note_tick((&self.cx.id, self.slot), (method, self.method_name(method)), payload, &chain);
        }
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
            Err(Failure::Refused(refusal)) => {
                shard.note_refused(&self.cx.id, method, &refusal);
                return Err((Some(refusal), reply));
            }
            Err(failure) => reply.finish(Completion::Failed(Box::new(failure))),
        }
        Ok(())
    }

    fn offer_tick(self: Rc<Self>, shard: &Shard, call: WireCall, mark: Mark) {
        self.take_tick(shard, call, mark);
    }

    fn run(self: Rc<Self>, shard: &Shard) {
        self.scheduled.set(false);
        self.visit(shard);
    }

    fn restart(self: Rc<Self>, shard: &Shard) {
        self.begin_again(shard);
    }

    fn reload(&self) {
        self.is_stale.set(Self::RELOADS);
    }

    fn notify(self: Rc<Self>, shard: &Shard, ended: Ended) {
        self.take_news(shard, ended);
    }

    fn hears(&self) -> bool {
        A::ENDED
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
        if self.phase.get() != Phase::Ready || !self.idle() || self.waiting() > 0 {
            // It may be a tick, which is no use of the actor.
            return Some(now + self.kind.idle() / 8);
        }
        if shard.is_needed(self.slot) || shard.is_tied(self.slot) {
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
                let refusal = shard.too_late(since.elapsed(now), envelope.deadline.since(now), place, &behind);
                self.refuse(envelope, refusal);
            }
            if self.phase.get() == Phase::Starting {
                // Those that have given up wait for the hook no more.
                let callers = self.next_callers(shard);
                shard.turns.borrow_mut().set_callers(self.slot, HOOK, callers);
            }
        }
        let mut next = Timestamp::NEVER;
        self.mailbox.each(&mut |since, envelope| {
            next = next.min(late::last_moment(since.elapsed(now), now, envelope.deadline));
        });
        if next != Timestamp::NEVER {
            self.watch(shard, next);
        }
    }

    fn each_message(&self, now: Timestamp, look: &mut dyn FnMut(Waiting<'_>)) {
        self.mailbox.each(&mut |since, envelope| {
            let method = match &envelope.body {
                Body::Typed(message) => self.method_name(A::Interface::method(message)),
                Body::Wire(call) => self.method_name(call.method),
                Body::Tick(tick) => format!("{} (tick)", self.method_name(tick.0.method)),
                Body::Ended(_) => "(ended)".to_owned(),
            };
            let Envelope { deadline, chain, .. } = envelope;
            look(Waiting { method, waited: since.elapsed(now), deadline: *deadline, link: &chain.link });
        });
    }

    fn state(&self) -> &'static str {
        match self.phase.get() {
            Phase::Starting => "starting",
            Phase::Ready => "ready",
            Phase::Ending | Phase::Gone => "ending",
        }
    }

    fn moments(&self) -> (Timestamp, Timestamp) {
        (moment(self.made), moment(self.last_used.get()))
    }

    fn kept_until(&self) -> Timestamp {
        moment(self.kept_until.get())
    }

    fn refuse_waiting(&self, refusal: &Refusal) {
        self.left_mailbox(self.waiting());
        for (_, envelope) in self.mailbox.take() {
            self.refuse(envelope, refusal.clone());
        }
    }

    fn busy(&self) -> bool {
        !self.idle()
    }

    #[cfg(feature = "rehearsal")]
    fn vanish(self: Rc<Self>, shard: &Shard) {
        drop(self.take_waiting());
        if let Some(gate) = self.kind.gate() {
            let hooks = self.phase.get() != Phase::Ready;
            gate.leave(self.reads.get() as usize + usize::from(self.exclusive.get() && !hooks));
        }
        self.gone(shard);
        let actor = self.actor.borrow_mut().take();
        drop(actor);
    }

    #[cfg(feature = "rehearsal")]
    fn actor(&self) -> &dyn Any {
        &self.actor
    }

    #[cfg(feature = "rehearsal")]
    fn shown(&self) -> Option<String> {
        let actor = self.actor.try_borrow().ok()?;
        Some(A::SHOW?(actor.as_ref()?))
    }

    #[cfg(feature = "rehearsal")]
    fn has_invariant(&self) -> bool {
        A::SOUND.is_some()
    }

    #[cfg(feature = "rehearsal")]
    fn unsound(&self) -> Option<String> {
        let sound = A::SOUND?;
        let actor = self.actor.try_borrow().ok()?;
        sound(actor.as_ref()?).err()
    }
}
