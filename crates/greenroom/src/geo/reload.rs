//! Activations that read their states again, as an instance in another cluster may have saved them.
//!
//! The machine of an actor reports each instance that it knows to have ended (`greenroom_protocols::gsi`, G9). An instance whose own
//! cluster has lost all memory of it is reported by nobody. So when a cluster is heard again after a silence, or leaves the list, every
//! activation of a kind with one instance compares its records once, before its next turn.

use std::sync::Arc;

use super::Geo;
use crate::shard::{Item, Shard, ShardId, Slot};

impl Geo {
    /// Has an activation of this node read its states again before its next turn.
    pub(super) fn reload(&self, shard: ShardId, slot: Slot) {
        if let Some(port) = self.shards.iter().find(|port| port.id == shard) {
            // A shard that has ended has no activations either.
            let _ = port.push(Item::Run(Box::new(move |shard: &Shard| shard.reload_activation(slot))));
        }
    }

    /// Has all activations of this node that should be the only ones read their states again before their next turns.
    pub(super) fn reload_all(self: &Arc<Self>) {
        for port in &self.shards {
            let geo = self.clone();
            let reload = move |shard: &Shard| shard.reload_all(|kind| geo.is_single(kind));
            let _ = port.push(Item::Run(Box::new(reload)));
        }
    }
}
