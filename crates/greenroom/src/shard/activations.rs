//! Which activations a shard has: how they are entered, found and taken out.

use std::rc::Rc;

use greenroom_protocols::directory::Epoch;
use greenroom_world::Timestamp;

use super::activation::AnyActivation;
use super::chain::Link;
use super::seed::Seed;
use super::{Gauges, Shard, Slot};
use crate::actor::error::Refusal;
use crate::actor::interface::Why;
use crate::actor::key::{ActorId, Kind};
use crate::pids::key::is_reserved;

impl Shard {
    /// Enters an activation of `id`, of `seed`, that the callers in `callers` wait for.
    pub(crate) fn activate(
        &self,
        id: ActorId,
        epoch: Epoch,
        seed: Seed,
        callers: Link,
    ) -> Result<Rc<dyn AnyActivation>, Refusal> {
        let Some(kind) = self.port.node.kinds().find(id.kind) else {
            return Err(self.port.node.unknown_kind(id.kind.name()));
        };
        let slot = self.activations.borrow_mut().insert(|slot| kind.clone().activation(self, id.clone(), epoch, slot));
        self.idle.borrow_mut().insert(self.now() + kind.idle(), slot);
        if self.port.node.kinds().workers(id.kind) == 0 {
            self.port.node.activated(&id, epoch, slot);
        }
        self.count_activation(&id, true);
        self.gauge_activations();
        let Some(activation) = self.activation(slot) else { return Err(Refusal::Moved) };
        #[cfg(feature = "rehearsal")]
        self.note_place(&*activation);
        activation.clone().start(self, seed, callers)?;
        Ok(activation)
    }

    /// Enters an activation that no directory knows and that is never idle.
    pub(crate) fn enter_spawned(&self, make: impl FnOnce(Slot) -> Rc<dyn AnyActivation>) -> Rc<dyn AnyActivation> {
        let mut made = None;
        self.activations.borrow_mut().insert(|slot| made.insert(make(slot)).clone());
        self.gauge_activations();
        let made = made.expect("a slab makes what it takes in");
        self.count_activation(made.id(), true);
        #[cfg(feature = "rehearsal")]
        self.note_place(&*made);
        made
    }

    pub(crate) fn activation(&self, slot: Slot) -> Option<Rc<dyn AnyActivation>> {
        self.activations.borrow().find(slot).cloned()
    }

    /// Lets the activation in `slot` save what it has changed, when `due` has passed.
    pub(super) fn save_at(&self, slot: Slot, due: Timestamp) {
        self.saves.borrow_mut().insert(due, slot);
    }

    /// Lets the activation in `slot` look at the clock again, when `due` has passed.
    pub(super) fn look_again(&self, slot: Slot, due: Timestamp) {
        self.idle.borrow_mut().insert(due, slot);
    }

    /// Ends an activation when it can.
    pub(crate) fn end_activation(&self, slot: Slot, why: Why) {
        match self.activation(slot) {
            Some(activation) => activation.end(self, why),
            None => self.follow_slot(slot, move |shard, slot| shard.end_activation(slot, why)),
        }
    }

    /// Has an activation read its states again before its next turn.
    pub(crate) fn reload_activation(&self, slot: Slot) {
        match self.activation(slot) {
            Some(activation) => activation.reload(),
            None => self.follow_slot(slot, |shard, slot| shard.reload_activation(slot)),
        }
    }

    /// Has all activations of the kinds that `filter` wants read their states again before their next turns.
    pub(crate) fn reload_all(&self, filter: impl Fn(Kind) -> bool) {
        self.activations.borrow().iter().filter(|activation| filter(activation.id().kind)).for_each(|it| it.reload());
    }

    /// Removes an activation that has ended, and tells the directory and the parts.
    pub(super) fn forget(&self, slot: Slot, id: &ActorId, epoch: Epoch, workers: u16, why: Why) {
        self.take_out(slot);
        if workers > 0 {
            self.workers.borrow_mut().remove(id, slot);
        } else if !is_reserved(&id.key) && !self.port.node.kinds().is_reliable(id.kind) {
            self.port.node.release(id, epoch);
        }
        self.note_ended(slot, why);
    }

    /// Takes an activation out, with what is tied to it on this shard.
    pub(super) fn take_out(&self, slot: Slot) {
        let gone = self.activations.borrow_mut().remove(slot);
        if let Some(gone) = gone {
            self.count_activation(gone.id(), false);
        }
        #[cfg(feature = "rehearsal")]
        self.note_left(slot);
        self.end_entrance(slot);
        self.end_ties(slot);
        self.timers.borrow_mut().forget(slot);
        self.gauge_activations();
    }

    /// Activations that users have made.
    pub(super) fn activations_len(&self) -> usize {
        self.activations.borrow().len().saturating_sub(self.servants().count())
    }

    pub(crate) fn gauge_activations(&self) {
        self.gauges().set_activations(self.activations_len());
    }

    pub(crate) fn gauges(&self) -> &Gauges {
        &self.port.node.gauges()[usize::from(self.index)]
    }
}
