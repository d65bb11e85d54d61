//! What the floors above keep at a node.

use std::any::{Any, TypeId};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use bytes::BytesMut;
use greenroom_protocols::directory::Epoch;
use greenroom_protocols::node::NodeId;
use greenroom_wire::{Decoder, Lane};
use greenroom_world::{BoxFuture, Stream};
use serde_json::Value;

use super::Here;
use super::figures::Figures;
use super::registrar::Registrar;
use crate::actor::key::ActorId;
use crate::cluster::view::{ClusterView, KindHosts};
use crate::geo::adaptive::report::Adaptive;
use crate::shard::parts::ShardPart;
use crate::shard::underway::Way;
use crate::state::early::Claim;
use crate::time::tick::Ticked;

/// What a feature keeps at a node.
pub(crate) trait Part: Any + Send + Sync {
    /// Begins what it does by itself: the node's shards and its control plane run, and it may not have joined yet.
    fn start(&self, here: &Arc<Here>) {
        let _ = here;
    }

    /// Says what it has measured.
    fn report(&self, figures: &mut Figures) {
        let _ = figures;
    }

    /// Takes in what the cluster is from now on, as [`Here::view`] says already.
    fn viewed(&self, view: &Arc<ClusterView>) {
        let _ = view;
    }

    /// Whether `kind`, which no node has, is one that hosts have offered: so that another may.
    fn has_had(&self, kind: &str) -> bool {
        let _ = kind;
        false
    }

    /// Counts that `kind` was called, which no node has; whether it is one that hosts have offered.
    fn miss(&self, kind: &str) -> bool {
        let _ = kind;
        false
    }

    /// How often kinds were missed since the node started.
    fn missed(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Returns true if the node's cluster drains, or has left the clusters of its system.
    fn is_cluster_leaving(&self) -> bool {
        false
    }

    /// Returns the kinds whose operations were refused without a caller that awaited them: how often since the node started, and the
    /// last reason.
    fn refused_operations(&self) -> Vec<(&'static str, u64, String)> {
        Vec::new()
    }

    /// Whether somebody offers `kind` at this node, though the cluster may not know of it yet.
    fn is_offered(&self, kind: &str) -> bool {
        let _ = kind;
        false
    }

    /// What it keeps on each shard, made with that.
    fn on_shard(&self) -> Option<Box<dyn ShardPart>> {
        None
    }

    /// How its actors are found, if the directory knows nothing of them.
    fn way(&self) -> Option<&dyn Way> {
        None
    }

    /// Who keeps the register of the node's activations, if that is this part: one of them does, or none.
    fn registrar(&self) -> Option<&dyn Registrar> {
        None
    }

    /// The node that `actor` belongs on, if it is one of the feature's and has such a node.
    fn home(&self, here: &Here, actor: &ActorId, hosts: &KindHosts) -> Option<NodeId> {
        let _ = (here, actor, hosts);
        None
    }

    /// The shard for a new activation of `kind`, if `near` is none of those where it can be.
    fn shard_beside(&self, here: &Here, kind: &str, near: u16) -> Option<u16> {
        let _ = (here, kind, near);
        None
    }

    /// How many instances an actor has over all clusters, if the part decides that.
    fn instances(&self, actor: &ActorId) -> Option<Adaptive> {
        let _ = actor;
        None
    }

    /// As [`Here::is_due`], of who keeps reminders.
    fn is_due(&self, here: &Arc<Here>, id: &ActorId, ticked: &Ticked) -> Option<BoxFuture<Result<bool, String>>> {
        let _ = (here, id, ticked);
        None
    }

    /// As [`Here::claim`], of who reads records early.
    fn claim(&self, id: &ActorId, epoch: Epoch, key: &str) -> Option<Claim> {
        let _ = (id, epoch, key);
        None
    }

    /// Reads what another node says on a connection of this lane; it comes back if the lane is none of the part's.
    fn read(&self, here: &Arc<Here>, lane: Lane, met: Met) -> Result<BoxFuture<io::Result<()>>, Met> {
        let _ = (here, lane);
        Err(met)
    }

    /// What it says to who looks at the cluster and asks for `what`, choosing by `by`; `None` if that is none of the feature's. It looks at
    /// what is published, and takes no shard's time.
    fn shows(&self, what: &str, by: &Value) -> Option<Value> {
        let _ = (what, by);
        None
    }

    /// The channel of control messages on which the same feature of other nodes speaks to it, if it does. The first belongs to the
    /// cluster itself.
    fn channel(&self) -> Option<u8> {
        None
    }

    /// Hears what the same feature of another node has said by [`Here::tell`]. It may come late, twice, or never, and from another
    /// version.
    fn told(&self, here: &Arc<Here>, from: NodeId, payload: &[u8]) {
        let _ = (here, from, payload);
    }

    /// Hears that an operator, or another node on behalf of one, wants the node to drain.
    fn drain(&self, here: &Arc<Here>) {
        let _ = here;
    }
}

/// A connection that another node has opened, its hello read; what was read behind that comes along.
pub(crate) struct Met {
    pub(crate) stream: Box<dyn Stream>,
    pub(crate) decoder: Decoder,
    pub(crate) input: BytesMut,
}

/// The parts of a node, each found by its type.
#[derive(Default)]
pub(crate) struct Parts {
    all: Vec<(TypeId, Box<dyn Part>)>,
    /// Which of them have a way for messages, the last first.
    ways: VecDeque<usize>,
    /// Which of them keeps the register of activations.
    registrar: Option<usize>,
}

impl Parts {
    /// These, and `part`.
    pub(crate) fn with<P: Part>(mut self, part: P) -> Self {
        if part.way().is_some() {
            self.ways.push_front(self.all.len());
        }
        if part.registrar().is_some() {
            self.registrar = Some(self.all.len());
        }
        self.all.push((TypeId::of::<P>(), Box::new(part)));
        self
    }

    /// The part of this type: there are few, so they are looked through.
    #[inline]
    pub(crate) fn find<P: Part>(&self) -> Option<&P> {
        let (_, part) = self.all.iter().find(|(of, _)| *of == TypeId::of::<P>())?;
        let part: &dyn Any = &**part;
        part.downcast_ref()
    }

    /// The ways of messages. A part that was handed over later is asked first, as it stands on those before.
    pub(crate) fn ways(&self) -> impl Iterator<Item = &dyn Way> {
        self.ways.iter().filter_map(|at| self.all.get(*at)?.1.way())
    }

    /// Who keeps the register of the node's activations.
    #[inline]
    pub(super) fn registrar(&self) -> Option<&dyn Registrar> {
        self.all.get(self.registrar?)?.1.registrar()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &dyn Part> {
        self.all.iter().map(|(_, part)| &**part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct One(u8);
    struct Other;
    struct Missing;
    impl Part for One {}
    impl Part for Other {}
    impl Part for Missing {}

    #[test]
    fn each_part_is_found_by_its_type() {
        let parts = Parts::default().with(Other).with(One(7));
        assert_eq!(parts.find::<One>().map(|one| one.0), Some(7));
        assert!(parts.find::<Other>().is_some() && parts.find::<Missing>().is_none());
        assert_eq!(parts.all().count(), 2);
    }
}
