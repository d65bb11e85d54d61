//! How an activation begins and ends.

use std::collections::VecDeque;
use std::pin::pin;
use std::rc::Rc;

use bytes::Bytes;
use futures_util::future::{Either, select};
use greenroom_world::Timestamp;

use super::{Activation, AnyActivation, HasTurns, Phase, moment, ticks};
use crate::actor::cx::Cx;
use crate::actor::error::Refusal;
use crate::actor::interface::{Behaviour, Message, Travels, Why};
use crate::actor::version_gap::VersionGap;
use crate::pids::key::dead;
use crate::shard::cancel::CallKey;
use crate::shard::chain::{Chain, Link};
use crate::shard::envelope::{Body, Envelope};
use crate::shard::failing::is_failure;
use crate::shard::frames::Caller;
use crate::shard::late::HOOK;
use crate::shard::mailbox::Since;
use crate::shard::parts;
use crate::shard::seed::Seed;
use crate::shard::{Shard, panic_message};
use crate::state::StateError;

impl<A: Behaviour> Activation<A> {
    #[expect(clippy::await_holding_refcell_ref, reason = "turns are admitted by the same rules as borrows")]
    pub(in crate::shard) fn begin_start(
        self: &Rc<Self>,
        shard: &Shard,
        seed: Seed,
        callers: Link,
    ) -> Result<(), Refusal> {
        self.phase.set(Phase::Starting);
        self.is_stale.set(false);
        let created = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.kind.create(&self.cx)));
        let actor = match created.unwrap_or_else(|panic| Err(panic_message(&*panic))) {
            Ok(actor) => actor,
            Err(message) => {
                let refusal = Refusal::Activation { message };
                self.fail_start(shard, &refusal);
                return Err(refusal);
            }
        };
        *self.actor.borrow_mut() = Some(actor);
        let carried = self.take_in(seed);
        if !A::ACTIVATED && !Self::LOADS && carried.is_none() {
            self.phase.set(Phase::Ready);
            return Ok(());
        }
        self.exclusive.set(true);
        let (this, begun) = (self.clone(), shard.now());
        let hook = Box::pin(async move {
            let result = match &mut *this.actor.borrow_mut() {
                Some(actor) => this.wake_up(actor, carried).await,
                None => Ok(()),
            };
            let asked_to_end = || Refusal::Activation { message: "it asked to end as it was activated".to_owned() };
            // To end at once would send those who wait to the next activation, and that one to the next.
            let result = match this.asked_to_end.get() {
                Some(Why::Asked) => result.and(Err(asked_to_end())),
                _ => result,
            };
            match result {
                Ok(()) => {
                    this.phase.set(Phase::Ready);
                    if Self::LOADS || A::ACTIVATED {
                        parts::woke(&this.cx.id, begun);
                    }
                }
                Err(refusal) => Shard::with(|shard| {
                    if let Some(shard) = shard {
                        this.fail_start(shard, &refusal);
                    }
                }),
            }
        });
        // They wait for the hook, and so for all that it calls.
        let caller = Caller::Apart { chain: Chain { link: callers, baggage: None }, call: CallKey::NONE };
        shard.begin_turn(self.clone(), HOOK, Timestamp::NEVER, caller, hook);
        match self.phase.get() {
            // The hook has failed without waiting for anything.
            Phase::Gone => Err(shard.failed_start.take().unwrap_or(Refusal::Moved)),
            _ => Ok(()),
        }
    }

    /// Returns the callers of the message that begins next.
    pub(in crate::shard) fn next_callers(&self, shard: &Shard) -> Link {
        let mut callers = Link::None;
        self.mailbox.pop_if(&shard.runs.spare, |next| {
            callers = next.chain.link.clone();
            None::<()>
        });
        callers
    }

    /// Makes `seed` known to who loads; what came along with it.
    fn take_in(&self, seed: Seed) -> Option<Bytes> {
        match seed {
            Seed::Fresh => None,
            Seed::Carried(state) => Some(state).filter(|_| Self::LEAVES),
            Seed::Kept(memory) => {
                if let Some(state) = &self.cx.state {
                    // It begins with it: there is nothing yet.
                    let _ = state.memory.set(memory);
                }
                None
            }
        }
    }

    pub(super) async fn wake_up(&self, actor: &mut A, carried: Option<Bytes>) -> Result<(), Refusal> {
        // What is in the store, then what came along and may be newer, then what of it is in the store only.
        if Self::LOADS && (carried.is_none() || A::OPTIONS.persistent || A::TRAVELS != Travels::Carrying) {
            actor.load(&self.cx).await.map_err(|error| not_loaded(&self.cx, error))?;
        }
        if let (Some(carried), Travels::Carrying) = (carried, A::TRAVELS) {
            let taken = actor.migrated(&self.cx, &carried).await;
            taken.map_err(|message| Refusal::Activation { message })?;
            for (name, field) in actor.stored() {
                field.load(&self.cx, name).await.map_err(|error| not_loaded(&self.cx, error))?;
            }
        }
        let activated = actor.activated(&self.cx).await;
        activated.map_err(|message| actor.not_activated(message))
    }

    pub(super) fn fail_start(self: &Rc<Self>, shard: &Shard, refusal: &Refusal) {
        if self.kind.is_spawned() {
            tracing::warn!(actor = %self.cx.id, %refusal, "a spawned actor could not be activated");
            return self.fail(shard, Why::Failed);
        }
        self.left_mailbox(self.waiting());
        let waiting = self.mailbox.take();
        shard.failed_start.set(Some(refusal.clone()));
        self.gone(shard);
        for (_, envelope) in waiting {
            self.refuse(envelope, refusal.clone());
        }
    }

    /// Begins the end, as no turn runs.
    #[expect(clippy::await_holding_refcell_ref, reason = "turns are admitted by the same rules as borrows")]
    pub(super) fn begin_end(self: &Rc<Self>, shard: &Shard, why: Why) {
        if self.phase.get() != Phase::Ready {
            return;
        }
        if self.kind.is_spawned() && is_failure(why) {
            return self.fail(shard, why);
        }
        if why == Why::Migrating {
            self.begin_move(shard);
            // Who goes to no other node may go to another shard.
            let this: Rc<dyn AnyActivation> = self.clone();
            if self.phase.get() == Phase::Ready
                && let Some(to) = shard.take_passage(&this)
            {
                self.pass(shard, to);
            }
            return self.go_on(shard);
        }
        // Whoever it matters to is told why.
        self.asked_to_end.set(Some(why));
        if why == Why::Killed {
            return self.finish_end(shard);
        }
        let saves = why != Why::Unsaved && self.saves_late();
        let yields = A::STORED && why == Why::Duplicate;
        if !(A::DEACTIVATING || saves || yields || self.is_unsettled()) || !shard.fence_open() {
            return self.finish_end(shard);
        }
        self.begin_last(shard);
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
                if yields {
                    this.yield_states(actor).await;
                }
                this.settle(actor).await;
            }
        });
        shard.begin_turn(self.clone(), HOOK, Timestamp::NEVER, Caller::NOBODY, hook);
    }

    /// Lets nothing begin any more but the last hook, which has its time.
    pub(in crate::shard) fn begin_last(&self, shard: &Shard) {
        self.phase.set(Phase::Ending);
        self.exclusive.set(true);
        self.last_used.set(ticks(shard.now()));
        shard.look_again(self.slot, shard.now() + shard.port().node.config().deactivating_timeout);
    }

    /// Begins what waits, if it stays after all.
    fn go_on(self: &Rc<Self>, shard: &Shard) {
        if self.phase.get() == Phase::Ready && !self.mailbox.is_empty() {
            self.schedule(shard);
        }
    }

    /// If the `deactivating` hook has had its time, ends the activation without it; otherwise says when to look again.
    pub(super) fn check_end(self: Rc<Self>, shard: &Shard, now: Timestamp) -> Option<Timestamp> {
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
    pub(super) async fn end_in_time(&self, end: impl Future<Output = ()> + Unpin) {
        let node = &self.cx.port.node;
        let limit = node.config().stop_timeout;
        let late = node.world().sleep_until(node.world().now() + limit);
        if let Either::Right(_) = select(end, late).await {
            tracing::warn!(actor = %self.cx.id, ?limit, "the deactivation took too long and is given up");
        }
    }

    /// Leaves, and sends what still waits to the actor's next activation.
    pub(in crate::shard) fn finish_end(self: &Rc<Self>, shard: &Shard) {
        if Self::LEAVES
            && let Some((trip, state)) = shard.take_packed(&self.cx.id)
        {
            return self.set_out(shard, trip, state);
        }
        let waiting = self.take_waiting();
        self.gone(shard);
        for (_, envelope) in waiting {
            match envelope.body {
                // Timers go with their activation.
                Body::Tick(_) => {}
                Body::Ended(_) => {}
                _ if self.kind.is_spawned() => self.refuse(envelope, dead(&self.cx.id)),
                _ => self.send_on(shard, envelope),
            }
        }
    }

    /// Sends what the activation leaves to the actor's next one.
    pub(in crate::shard) fn send_on(&self, shard: &Shard, envelope: Envelope<Message<A>>) {
        match envelope {
            // What its interface is, is known at run time alone.
            Envelope { body: Body::Wire(call), deadline, chain } if A::FOREIGN => {
                let method = self.kind.methods().get(usize::from(call.method)).map_or("", |method| method.name);
                shard.resubmit_raw(&self.cx.id, method, *call, deadline, chain);
            }
            envelope => shard.resubmit::<A::Interface>(&self.cx.id, envelope),
        }
    }

    /// Takes what waits.
    pub(in crate::shard) fn take_waiting(&self) -> VecDeque<(Since, Envelope<Message<A>>)> {
        self.left_mailbox(self.waiting());
        self.mailbox.take()
    }

    pub(super) fn gone(self: &Rc<Self>, shard: &Shard) {
        if self.phase.replace(Phase::Gone) != Phase::Gone {
            let why = self.asked_to_end.take().unwrap_or(Why::Failed);
            shard.forget(self.slot, &self.cx.id, self.cx.epoch, self.kind.workers(), why);
        }
    }
}

/// Why an activation does not begin whose state could not be loaded.
fn not_loaded(cx: &Cx, error: StateError) -> Refusal {
    match error {
        StateError::Newer { state, wrote, reads } => {
            VersionGap::unread_of(&cx.id, &state, wrote, (cx.port.node.name(), reads)).into()
        }
        error => Refusal::Activation { message: error.to_string() },
    }
}
