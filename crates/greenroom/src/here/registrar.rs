//! Who keeps the register of a node's activations, and what is asked there.

use greenroom_protocols::directory::Epoch;
use greenroom_protocols::node::NodeId;

use super::Here;
use crate::actor::key::ActorId;
use crate::shard::{ShardId, Slot};

/// The part of a node that agrees with other nodes on which of them has an actor.
pub(crate) trait Registrar {
    /// Notes where the shard has put the activation that it was told to make.
    fn activated(&self, id: &ActorId, epoch: Epoch, slot: Slot);

    /// Takes an activation out that has ended.
    fn released(&self, here: &Here, id: &ActorId, epoch: Epoch);

    /// The shard of this node that has the actor of this hash.
    fn home(&self, id: &ActorId, hash: u64) -> Option<ShardId>;

    /// Whether the activation may not be the only one over all clusters.
    fn is_doubtful(&self, id: &ActorId, epoch: Epoch) -> bool;

    /// A node through which `to` is reached, if the direct way there is cut.
    fn detour(&self, here: &Here, to: NodeId) -> Option<NodeId>;

    /// Hears that somebody knows this version of the cluster's table.
    fn hears_of(&self, here: &Here, version: u64);
}

/// All of it is as of a node that is in no cluster, where nobody keeps a register.
impl Here {
    /// As [`Registrar::activated`].
    pub(crate) fn activated(&self, id: &ActorId, epoch: Epoch, slot: Slot) {
        if let Some(registrar) = self.parts.registrar() {
            registrar.activated(id, epoch, slot);
        }
    }

    /// As [`Registrar::released`].
    pub(crate) fn release(&self, id: &ActorId, epoch: Epoch) {
        if let Some(registrar) = self.parts.registrar() {
            registrar.released(self, id, epoch);
        }
    }

    /// As [`Registrar::home`].
    pub(crate) fn home(&self, id: &ActorId, hash: u64) -> Option<ShardId> {
        self.parts.registrar()?.home(id, hash)
    }

    /// As [`Registrar::is_doubtful`].
    pub(crate) fn is_doubtful(&self, id: &ActorId, epoch: Epoch) -> bool {
        self.parts.registrar().is_some_and(|registrar| registrar.is_doubtful(id, epoch))
    }

    /// As [`Registrar::detour`].
    pub(crate) fn detour(&self, to: NodeId) -> Option<NodeId> {
        self.parts.registrar()?.detour(self, to)
    }

    /// As [`Registrar::hears_of`].
    pub(crate) fn hears_of(&self, version: u64) {
        if let Some(registrar) = self.parts.registrar() {
            registrar.hears_of(self, version);
        }
    }
}
