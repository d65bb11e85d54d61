//! What a node keeps of its cluster, and what its other parts ask there.

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use greenroom_protocols::directory::{Epoch, Grant};
use greenroom_protocols::node::NodeId;

use super::directory::{Border, Directory};
use super::moves::Moves;
use super::placement::Placements;
use super::{Loads, Order, Orders, ending};
use crate::actor::error::Refusal;
use crate::actor::key::ActorId;
use crate::here::Here;
use crate::here::location::{Asker, Location};
use crate::here::parts::Part;
use crate::here::registrar::Registrar;
use crate::shard::parts::ShardPart;
use crate::shard::underway::Way;
use crate::shard::{ShardId, Slot};

/// A node's part in its cluster.
pub(crate) struct InCluster {
    placements: Placements,
    loads: Loads,
    orders: Orders,
    border: Option<Arc<dyn Border>>,
    /// Made once the table has given this node an id.
    pub(super) directory: OnceLock<Directory>,
}

impl InCluster {
    pub(crate) fn new(placements: Placements, orders: Orders, border: Option<Arc<dyn Border>>) -> Self {
        Self { placements, loads: Loads::default(), orders, border, directory: OnceLock::new() }
    }
}

impl Part for InCluster {
    fn way(&self) -> Option<&dyn Way> {
        Some(self)
    }

    fn registrar(&self) -> Option<&dyn Registrar> {
        Some(self)
    }

    fn on_shard(&self) -> Option<Box<dyn ShardPart>> {
        Some(Box::new(RefCell::new(Moves::default())))
    }

    fn channel(&self) -> Option<u8> {
        Some(ending::CHANNEL)
    }

    fn told(&self, here: &Arc<Here>, _from: NodeId, payload: &[u8]) {
        ending::hear(here, payload);
    }
}

impl Registrar for InCluster {
    fn activated(&self, id: &ActorId, epoch: Epoch, slot: Slot) {
        if let Some(directory) = self.directory.get() {
            directory.activated(id, id.stable_hash(), epoch, slot);
        }
    }

    fn released(&self, here: &Here, id: &ActorId, epoch: Epoch) {
        let released = self.directory.get().and_then(|directory| directory.release(here.world().now(), id, epoch));
        if let Some((owner, released)) = released {
            here.order(Order::Released(owner, released));
        }
    }

    fn home(&self, id: &ActorId, hash: u64) -> Option<ShardId> {
        self.directory.get()?.home(id, hash)
    }

    fn is_doubtful(&self, id: &ActorId, epoch: Epoch) -> bool {
        self.directory.get().is_some_and(|directory| directory.is_doubtful(id, epoch))
    }

    fn detour(&self, here: &Here, to: NodeId) -> Option<NodeId> {
        let apart = self.loads.apart(here.world().now());
        if !apart.contains(&to) {
            return None;
        }
        let view = here.view();
        let near = |node: &NodeId| *node != here.me() && !apart.contains(node);
        let relays: Vec<NodeId> = view.view.active().map(|(node, _)| node).filter(near).collect();
        let draw = here.world().random().checked_rem(relays.len() as u64)?;
        relays.get(draw as usize).copied()
    }

    fn hears_of(&self, here: &Here, version: u64) {
        here.order(Order::Refresh(version));
    }
}

impl Here {
    fn in_cluster(&self) -> &InCluster {
        self.part()
    }

    pub(crate) fn placements(&self) -> &Placements {
        &self.in_cluster().placements
    }

    pub(crate) fn loads(&self) -> &Loads {
        &self.in_cluster().loads
    }

    /// Who knows of other clusters, if there are any.
    pub(super) fn border(&self) -> Option<&dyn Border> {
        self.in_cluster().border.as_deref()
    }

    /// `None` before the node joined.
    pub(crate) fn directory(&self) -> Option<&Directory> {
        self.in_cluster().directory.get()
    }

    /// Whether the node is active in its view, and its directory goes by that.
    pub(crate) fn takes_part(&self) -> bool {
        let view = self.view();
        let goes_by = |version| self.directory().is_some_and(|directory| directory.viewed() >= version);
        view.view.is_active(self.me()) && goes_by(view.view.version)
    }

    /// Takes in the id that the table has given to this incarnation, which has a directory from then on.
    pub(crate) fn set_me(&self, me: NodeId) {
        // In this order: who finds a directory finds the id, too.
        self.be(me);
        let InCluster { border, directory, .. } = self.in_cluster();
        directory.get_or_init(|| Directory::new(me, self.config().checks, border.clone()));
    }

    /// Has the same feature of another node hear this, on its channel. It may be lost.
    pub(crate) fn tell(&self, to: NodeId, channel: u8, payload: Bytes) {
        self.order(Order::Tell { to, channel, payload });
    }

    /// Hands an order to the control plane. A full queue drops it: whatever matters is repeated.
    pub(crate) fn order(&self, order: Order) {
        if self.in_cluster().orders.try_send(order).is_err() && !self.is_stopped() {
            tracing::warn!("the control plane cannot keep up");
        }
    }

    pub(crate) fn locate(
        &self,
        id: &ActorId,
        hash: u64,
        asker: Asker,
        grant: Option<Grant>,
    ) -> Result<Location, Refusal> {
        match self.directory() {
            Some(directory) => directory.locate(self, id, hash, asker, grant),
            None => Err(Refusal::Recovering),
        }
    }
}
