//! Stateless workers: several activations of one actor on one shard.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::activation::AnyActivation;
use super::chain::Link;
use super::seed::Seed;
use super::{Shard, Slot};
use crate::actor::error::Refusal;
use crate::actor::key::ActorId;

/// The stateless workers of this shard.
#[derive(Default)]
pub(super) struct Workers(BTreeMap<ActorId, Vec<Slot>>);

impl Workers {
    /// Actors that have workers here.
    #[cfg(feature = "rehearsal")]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn remove(&mut self, id: &ActorId, slot: Slot) {
        if let Some(slots) = self.0.get_mut(id) {
            slots.retain(|known| *known != slot);
            if slots.is_empty() {
                self.0.remove(id);
            }
        }
    }
}

impl Shard {
    /// Returns a worker of this shard for a message to `id` with these callers: an idle one, a new one, or the one with the shortest queue.
    pub(crate) fn worker(&self, id: &ActorId, callers: Link) -> Result<Rc<dyn AnyActivation>, Refusal> {
        let node = &self.port.node;
        let max = usize::from(node.kinds().workers(id.kind)).div_ceil(node.shards().len());
        let slots = self.workers.borrow().0.get(id).cloned().unwrap_or_default();
        let workers: Vec<_> = slots.into_iter().filter_map(|slot| self.activation(slot)).collect();
        if let Some(idle) = workers.iter().find(|worker| !worker.busy() && worker.waiting() == 0) {
            return Ok(idle.clone());
        }
        if workers.len() < max {
            let worker = self.activate(id.clone(), node.next_worker_epoch(), Seed::Fresh, callers)?;
            self.workers.borrow_mut().0.entry(id.clone()).or_default().push(worker.slot());
            return Ok(worker);
        }
        workers.into_iter().min_by_key(|worker| worker.waiting()).ok_or(Refusal::Stopping)
    }
}
