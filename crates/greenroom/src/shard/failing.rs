//! What only some activations meet: failures of spawned actors, their second lives, and news of others' ends.

use std::panic::{self, AssertUnwindSafe};
use std::rc::Rc;

use greenroom_world::Timestamp;

use super::Shard;
use super::activation::{Activation, Phase, ticks};
use super::chain::Chain;
use super::envelope::{Body, Envelope};
use super::frames::Caller;
use super::late::HOOK;
use super::parts::Fate;
use super::seed::Seed;
use super::submit::refuse;
use crate::actor::error::Refusal;
use crate::actor::interface::{Behaviour, Message, Why};
use crate::pids::ended::Ended;
use crate::state::Saving;

/// Whether a spawned actor that ends for this is looked at by its supervision.
pub(super) fn is_failure(why: Why) -> bool {
    matches!(why, Why::Panicked | Why::Escalated | Why::Together)
}

impl<A: Behaviour> Activation<A> {
    /// A spawned actor has failed, and no turn looks at it: its supervision decides.
    pub(super) fn fail(self: &Rc<Self>, shard: &Shard, why: Why) {
        self.phase.set(Phase::Starting);
        let failed = self.actor.borrow_mut().take();
        // It is broken: that it cannot even be dropped is part of the same failure.
        let _ = panic::catch_unwind(AssertUnwindSafe(|| drop(failed)));
        let asked = self.asked_to_end.take().filter(|asked| !is_failure(*asked));
        if let Some(asked) = asked {
            self.asked_to_end.set(Some(asked));
            return self.finish_end(shard);
        }
        if let Fate::End { then } = shard.decide(self.slot, &self.cx.id, why) {
            self.asked_to_end.set(Some(Why::Failed));
            self.finish_end(shard);
            if let Some(then) = then {
                then(shard);
            }
        }
    }

    /// Whether it is a spawned actor that waits for being made anew.
    fn pauses(&self) -> bool {
        self.kind.is_spawned() && self.phase.get() == Phase::Starting && self.idle()
    }

    /// Notes that it is to end when it can.
    pub(super) fn ask_to_end(self: &Rc<Self>, shard: &Shard, why: Why) {
        if self.pauses() {
            // If a sibling has failed, it is about to be made anew already.
            if !is_failure(why) {
                self.asked_to_end.set(Some(why));
                self.finish_end(shard);
            }
        } else if !(is_failure(why) || why == Why::Migrating) || self.asked_to_end.get().is_none() {
            // A failure does not keep what somebody has asked to end, and what is to end does not travel.
            self.asked_to_end.set(Some(why));
        }
    }

    /// Makes the actor anew.
    pub(super) fn begin_again(self: &Rc<Self>, shard: &Shard) {
        if !self.pauses() {
            return;
        }
        // What goes wrong is another failure.
        let _ = self.begin_start(shard, Seed::Fresh, self.next_callers(shard));
        if self.phase.get() == Phase::Ready && self.waiting_len() > 0 {
            self.schedule(shard);
        }
    }

    /// Queues the news that an actor that this one watches has ended.
    pub(super) fn take_news(self: &Rc<Self>, shard: &Shard, ended: Ended) {
        if A::ENDED && self.phase.get() != Phase::Gone {
            let body = Body::Ended(Box::new(ended));
            self.enqueue(shard, Envelope { body, deadline: Timestamp::NEVER, chain: Chain::NONE });
        }
    }

    /// Begins the turn of the `ended` hook.
    #[expect(clippy::await_holding_refcell_ref, reason = "turns are admitted by the same rules as borrows")]
    pub(super) fn begin_ended(self: &Rc<Self>, shard: &Shard, ended: Ended) {
        if !shard.fence_open() {
            return;
        }
        self.last_used.set(ticks(shard.now()));
        shard.count_hook();
        self.exclusive.set(true);
        let this = self.clone();
        let turn = Box::pin(async move {
            if let Some(actor) = &mut *this.actor.borrow_mut() {
                actor.ended(&this.cx, ended).await;
                if A::OPTIONS.saving != Saving::Explicit {
                    this.turn_done(actor).await;
                }
            }
        });
        shard.begin_turn(self.clone(), HOOK, Timestamp::NEVER, Caller::NOBODY, turn);
    }

    /// Refuses a message that waited, or tells nobody and keeps it as a dead letter.
    pub(super) fn refuse(&self, envelope: Envelope<Message<A>>, refusal: Refusal) {
        Shard::with(|shard| {
            if let (Some(shard), Some(method)) = (shard, Self::method_of(&envelope.body)) {
                shard.note_refused(&self.cx.id, method, &refusal);
            }
        });
        refuse::<A::Interface>(&self.cx.id, envelope, refusal);
    }
}
