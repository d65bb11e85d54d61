//! Turns that a tick begins: of a timer of the activation itself, or of a reminder.

use std::rc::Rc;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use greenroom_protocols::reminders::TickRefusal;
use greenroom_world::{LocalFuture, Timestamp};

use super::activation::{Activation, Phase, decode, ticks};
use super::baggage::Baggage;
use super::cancel::CallKey;
use super::chain::{Chain, Link};
use super::envelope::{Body, Envelope, WireCall};
use super::frames::Caller;
use super::raw::{Journey, RawCall};
use super::timers::{Due, Ticket};
use super::turns::{Access, Job};
use super::{Shard, Slot};
use crate::actor::cx::Cx;
use crate::actor::error::Refusal;
use crate::actor::interface::{Behaviour, Interface, Message};
use crate::actor::reference::Inner;
use crate::actor::reply::{Watcher, WireReply, refused};
use crate::intercept::OutcomeCell;
use crate::state::Saving;
use crate::time::tick::{Tick, Ticked};

/// What makes a message a tick.
pub(crate) enum Mark {
    /// Of a timer of the activation that has the message.
    Timer(Ticket),
}

impl Shard {
    /// Begins what timers have made due at `now`.
    pub(super) fn tick_timers(&self, now: Timestamp) {
        for _ in 0..TICKS_A_ROUND {
            let due = self.take_due_timer(now);
            let Some(Due { slot, target, method, method_name, arguments, ticket }) = due else { return };
            match target {
                Some(target) => {
                    if self.begin_timer(&ticket, now).is_some() {
                        self.send_later(&target, method_name, &arguments);
                    }
                }
                None => {
                    if let Some(activation) = self.activation(slot) {
                        let call = WireCall { method, payload: arguments, reply: WireReply::nobody() };
                        activation.offer_tick(self, call, Mark::Timer(ticket));
                    }
                }
            }
        }
    }

    /// Sends what a timer of this shard's had for another actor.
    fn send_later(&self, target: &Inner, method: &str, arguments: &Bytes) {
        let node = &self.port.node;
        let route = Arc::new(node.kinds().route(target.id.kind.name(), method));
        let journey = Journey { origin: node.me(), from: node.me(), hops: 0, grant: None };
        self.refill_budget();
        self.submit_raw(RawCall {
            key: &target.id.key,
            route: &route,
            payload: arguments,
            reply: WireReply::nobody(),
            deadline: Timestamp::NEVER,
            chain: Chain::NONE,
            journey,
            sender: None,
        });
    }
}

impl<A: Behaviour> Activation<A> {
    /// Takes in a tick.
    pub(super) fn take_tick(self: &Rc<Self>, shard: &Shard, call: WireCall, mark: Mark) {
        match self.phase.get() {
            Phase::Starting | Phase::Ready => {
                let body = Body::Tick(Box::new((call, mark)));
                self.enqueue(shard, Envelope { body, deadline: Timestamp::NEVER, chain: Chain::NONE });
            }
            // Timers go with their activation.
            Phase::Ending | Phase::Gone => {}
        }
    }

    /// Begins the turn of a tick that has waited for it.
    pub(super) fn begin_tick(self: &Rc<Self>, shard: &Shard, access: Access, call: WireCall, mark: Mark) {
        let WireCall { method, payload, reply } = call;
        let Some(message) = decode::<A>(method, &payload, reply) else { return };
        if !shard.fence_open() {
            return;
        }
        let Mark::Timer(ticket) = mark;
        let Some((late_by, missed)) = shard.begin_timer(&ticket, shard.now()) else { return };
        let due = UNIX_EPOCH + shard.port().node.world().wall().saturating_sub(late_by);
        let tick = Tick { reminder: None, due, late_by, missed };
        // Its own timers do not keep an activation from being idle: it counts as used no later than before.
        self.tick_turn(shard, access, message, tick, ticket);
    }

    fn tick_turn(self: &Rc<Self>, shard: &Shard, access: Access, message: Message<A>, tick: Tick, ticket: Ticket) {
        let method = A::Interface::method(&message);
        let message = self.occupy(shard, access, message, A::OPTIONS.saving == Saving::EachTurn);
        let this = self.clone();
        let turn: LocalFuture = Box::pin(async move {
            let _ticket = ticket;
            this.perform(access, message, A::OPTIONS.saving).await;
        });
        let baggage = Baggage { tick: Some(Box::new(Ticked { tick, registration: 0 })), ..Baggage::default() };
        let chain = Chain { link: Link::None, baggage: Some(Arc::new(baggage)) };
        let caller = Caller::Apart { chain, call: CallKey::NONE };
        shard.begin_turn(self.clone(), Job { access, method }, Timestamp::NEVER, caller, turn);
    }

    /// Begins the turn of a reminder's tick. It looks at the record before it runs, does not run beside itself, and is done here once its
    /// turn has ended and, where the kind saves, has saved: kinds that save later save at once after it.
    pub(super) fn begin_reminded(
        self: &Rc<Self>,
        shard: &Shard,
        access: Access,
        mut message: Message<A>,
        deadline: Timestamp,
        chain: Chain,
    ) {
        let Some(ticked) = chain.baggage.as_ref().and_then(|baggage| baggage.tick.as_deref().cloned()) else { return };
        self.last_used.set(ticks(shard.now()));
        let method = A::Interface::method(&message);
        let saving = match A::OPTIONS.saving {
            Saving::Explicit => Saving::Explicit,
            Saving::EachTurn | Saving::Every(_) => Saving::EachTurn,
        };
        let outcome = OutcomeCell::default();
        A::Interface::reply(&mut message).watch(Watcher(outcome.clone()));
        let mut message = self.occupy(shard, access, message, saving == Saving::EachTurn);
        let this = self.clone();
        let turn: LocalFuture = Box::pin(async move {
            match may_tick(&this.cx, this.slot, &ticked, outcome).await {
                Err(refusal) => A::Interface::reply(&mut message).take().finish(refused(refusal)),
                Ok(_running) => this.perform(access, message, saving).await,
            }
        });
        let caller = Caller::Apart { chain, call: CallKey::NONE };
        shard.begin_turn(self.clone(), Job { access, method }, deadline, caller, turn);
    }

    /// Enters a turn that is about to begin. If `holds`, an exclusive turn's reply waits until its state is saved.
    fn occupy(&self, shard: &Shard, access: Access, mut message: Message<A>, holds: bool) -> Message<A> {
        shard.count_turn(self.cx.id.kind, self.kind.place(), A::Interface::method(&message));
        if access == Access::Exclusive && holds {
            A::Interface::reply(&mut message).hold();
        }
        match access {
            Access::Exclusive => self.exclusive.set(true),
            Access::Read => self.reads.set(self.reads.get() + 1),
        }
        message
    }

    #[expect(clippy::await_holding_refcell_ref, reason = "turns are admitted by the same rules as borrows")]
    async fn perform(&self, access: Access, message: Message<A>, saving: Saving) {
        match access {
            Access::Exclusive => {
                if let Some(actor) = &mut *self.actor.borrow_mut() {
                    actor.exclusive(&self.cx, message).await;
                    self.save_by(saving, actor).await;
                }
            }
            Access::Read => {
                if let Some(actor) = &*self.actor.borrow() {
                    actor.read(&self.cx, message).await;
                }
            }
        }
    }
}

/// A reminder's tick whose turn runs. Dropped, it takes in how the turn has ended.
struct RunningTick {
    slot: Slot,
    ticked: Ticked,
    outcome: OutcomeCell,
    /// True if the tick is done whatever its turn's outcome, as only a test has it.
    ignores_outcome: bool,
}

impl RunningTick {
    /// Notes that the tick's turn begins.
    ///
    /// # Errors
    /// [`Refusal::TickOver`]: the tick is done here, or runs here now.
    fn begin(cx: &Cx, slot: Slot, ticked: &Ticked, outcome: OutcomeCell) -> Result<Self, Refusal> {
        let begun =
            Shard::with(|shard| shard.map_or(Ok(()), |shard| shard.timers.borrow_mut().begin_tick(slot, ticked)));
        begun.map_err(|refusal| Refusal::TickOver { ran: refusal == TickRefusal::Done })?;
        let ignores_outcome = !cx.port.node.config().checks.tick_outcome;
        Ok(Self { slot, ticked: ticked.clone(), outcome, ignores_outcome })
    }
}

impl Drop for RunningTick {
    fn drop(&mut self) {
        let is_done = self.outcome.is_complete() || self.ignores_outcome;
        // Elsewhere than on its shard a turn is dropped only when the node is torn down.
        Shard::with(|shard| {
            if let Some(shard) = shard {
                shard.timers.borrow_mut().end_tick(self.slot, &self.ticked, is_done);
            }
        });
    }
}

/// Begins the tick of a reminder if its turn may run, and lets the turn know how late it is.
async fn may_tick(cx: &Cx, slot: Slot, ticked: &Ticked, outcome: OutcomeCell) -> Result<RunningTick, Refusal> {
    let node = &cx.port.node;
    let running = RunningTick::begin(cx, slot, ticked, outcome)?;
    let is_to_check = node.config().checks.tick_check;
    #[cfg(feature = "rehearsal")]
    let is_to_check = is_to_check && !Shard::with(|shard| shard.is_some_and(|shard| shard.comes_again(ticked)));
    if is_to_check {
        match node.is_due(&cx.id, ticked).await {
            Ok(true) if !node.fence_open() => return Err(Refusal::Fenced),
            Ok(true) => {}
            Ok(false) => return Err(Refusal::TickOver { ran: false }),
            Err(reason) => return Err(Refusal::Unreachable { node: "with the store of reminders".into(), reason }),
        }
    }
    let late_by = node.world().wall().saturating_sub(ticked.tick.due.duration_since(UNIX_EPOCH).unwrap_or_default());
    Shard::with(|shard| {
        shard.map_or(Ok(()), |shard| {
            shard.carry(|baggage| {
                if let Some(ticked) = &mut baggage.tick {
                    ticked.tick.late_by = late_by;
                }
                Ok::<(), Refusal>(())
            })
        })
    })?;
    Ok(running)
}

/// Ticks that one look at the clock may begin.
const TICKS_A_ROUND: usize = 1024;
