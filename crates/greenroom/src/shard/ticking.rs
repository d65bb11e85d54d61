//! Turns that a tick begins: of a timer of the activation itself, or of a reminder.

use std::rc::Rc;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use greenroom_world::{LocalFuture, Timestamp};

use super::Shard;
use super::activation::{Activation, Phase, decode};
use super::baggage::Baggage;
use super::cancel::CallKey;
use super::envelope::{Body, Envelope, WireCall};
use super::frames::Caller;
use super::raw::{Journey, RawCall};
use super::timers::{Due, Ticket};
use super::turns::{Access, Chain, Job, Link};
use crate::actor::interface::{Behaviour, Interface, Message};
use crate::actor::reference::Inner;
use crate::actor::reply::WireReply;
use crate::state::Saving;
use crate::time::{Tick, Ticked};

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

    #[expect(clippy::await_holding_refcell_ref, reason = "turns are admitted by the same rules as borrows")]
    fn tick_turn(self: &Rc<Self>, shard: &Shard, access: Access, mut message: Message<A>, tick: Tick, ticket: Ticket) {
        shard.count_turn();
        let method = A::Interface::method(&message);
        if access == Access::Exclusive && A::OPTIONS.saving == Saving::EachTurn {
            A::Interface::reply(&mut message).hold();
        }
        match access {
            Access::Exclusive => self.exclusive.set(true),
            Access::Read => self.reads.set(self.reads.get() + 1),
        }
        let this = self.clone();
        let turn: LocalFuture = Box::pin(async move {
            let _ticket = ticket;
            match access {
                Access::Exclusive => {
                    if let Some(actor) = &mut *this.actor.borrow_mut() {
                        actor.exclusive(&this.cx, message).await;
                        if A::OPTIONS.saving != Saving::Explicit {
                            this.turn_done(actor).await;
                        }
                    }
                }
                Access::Read => {
                    if let Some(actor) = &*this.actor.borrow() {
                        actor.read(&this.cx, message).await;
                    }
                }
            }
        });
        let baggage = Baggage { tick: Some(Box::new(Ticked { tick, registration: 0 })), ..Baggage::default() };
        let chain = Chain { link: Link::None, baggage: Some(Arc::new(baggage)) };
        let caller = Caller::Apart { chain, call: CallKey::NONE };
        shard.begin_turn(self.clone(), Job { access, method }, Timestamp::NEVER, caller, turn);
    }
}

/// Ticks that one look at the clock may begin.
const TICKS_A_ROUND: usize = 1024;
