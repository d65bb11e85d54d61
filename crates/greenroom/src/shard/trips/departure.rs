//! How an activation leaves its node with what it holds.

use std::rc::Rc;

use bytes::Bytes;
use greenroom_protocols::directory::Epoch;
use greenroom_world::Timestamp;

use super::{STATE_LEN_MAX, Trip};
use crate::actor::interface::{Behaviour, Travels, Why};
use crate::actor::key::ActorId;
use crate::shard::Shard;
use crate::shard::activation::{Activation, Phase};
use crate::shard::envelope::Body;
use crate::shard::frames::Caller;
use crate::shard::late::HOOK;

/// An activation that has ended, to begin anew where its trip goes.
pub(crate) struct Departed {
    pub(crate) id: ActorId,
    pub(crate) epoch: Epoch,
    pub(crate) trip: Trip,
    /// What it carries.
    pub(crate) state: Bytes,
}

impl<A: Behaviour> Activation<A> {
    /// Whether activations of its kind leave at all: known to the compiler.
    pub(in crate::shard) const LEAVES: bool = !matches!(A::TRAVELS, Travels::Not);

    /// Begins to leave with its state, as no turn runs.
    #[expect(clippy::await_holding_refcell_ref, reason = "turns are admitted by the same rules as borrows")]
    pub(in crate::shard) fn begin_move(self: &Rc<Self>, shard: &Shard) {
        let trip = shard.trips.borrow_mut().wanted.remove(&self.cx.id);
        let leaves = |trip: &Trip| Self::LEAVES && shard.fence_open() && shard.now() < trip.until;
        let Some(trip) = trip.filter(leaves) else { return };
        self.begin_last(shard);
        let this = self.clone();
        let hook = Box::pin(async move {
            if let Some(actor) = &mut *this.actor.borrow_mut() {
                match this.pack(actor).await {
                    Ok(Some(state)) => Shard::with(|shard| {
                        if let Some(shard) = shard {
                            shard.trips.borrow_mut().packed.insert(this.cx.id.clone(), (trip, state));
                        }
                    }),
                    // It is to end for another reason.
                    Ok(None) => {}
                    Err(why) => {
                        tracing::warn!(actor = %this.cx.id, why, "an activation stays where it is");
                        this.phase.set(Phase::Ready);
                    }
                }
            }
        });
        shard.begin_turn(self.clone(), HOOK, Timestamp::NEVER, Caller::NOBODY, hook);
    }

    /// Saves what is unsaved, and packs what the actor carries; why it cannot leave, otherwise.
    async fn pack(&self, actor: &mut A) -> Result<Option<Bytes>, String> {
        if self.saves_late() {
            self.save_late(actor).await;
            if self.saves_late() {
                return Err("what it has answered could not be saved; it tries again later".to_owned());
            }
        }
        let state = actor.migrating(&self.cx).await?;
        if state.len() > STATE_LEN_MAX {
            return Err(format!("it carries {} bytes, more than {STATE_LEN_MAX}", state.len()));
        }
        if A::DEACTIVATING {
            actor.deactivating(&self.cx, Why::Migrating).await;
        }
        if self.saves_late() {
            self.save_late(actor).await;
        }
        self.settle(actor).await;
        // The store has refused a save, or a later activation is known: then what is here counts no more.
        Ok(self.asked_to_end.get().is_none().then_some(state))
    }

    /// Sets out; what waits follows, once it is known where to.
    pub(in crate::shard) fn set_out(self: &Rc<Self>, shard: &Shard, trip: Trip, state: Bytes) {
        self.phase.set(Phase::Gone);
        let waiting = self.take_waiting();
        shard.take_out(self.slot);
        shard.send_on_trip(Departed { id: self.cx.id.clone(), epoch: self.cx.epoch, trip, state });
        shard.note_ended(self.slot, Why::Migrating);
        for (_, envelope) in waiting {
            match envelope.body {
                // They go with their activation.
                Body::Tick(_) | Body::Ended(_) => {}
                Body::Typed(_) | Body::Wire(_) => self.send_on(shard, envelope),
            }
        }
    }
}
