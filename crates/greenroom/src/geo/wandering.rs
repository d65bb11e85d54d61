//! Actors that go to the cluster that calls them most: the optimiser finds them, and the owner of their range lets them go.
//!
//! At most one owner stays what rounds keep true: here an instance ends, and the calls that wait for it leave the other cluster some time to
//! ask first.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use greenroom_protocols::gsi::{ClusterId, Standing};
use greenroom_protocols::node::{Instances, NodeId};
use serde::{Deserialize, Serialize};

use super::Geo;
use super::states::shown;
use crate::actor::key::{ActorId, Kind};
use crate::cluster::directory::Entry;
use crate::here::Here;
use crate::locality::{self, Called};

/// What a node tells the owner of an actor's range.
#[derive(Serialize, Deserialize)]
struct Yields {
    kind: String,
    key: String,
}

/// Lets actors of this node go, until it stops.
pub(super) async fn wander(geo: Arc<Geo>, node: Arc<Here>) {
    let world = node.world();
    while !node.is_stopped() {
        world.sleep_until(world.now() + EVERY).await;
        if node.is_handing_over() {
            continue;
        }
        let mut far = BTreeMap::new();
        let everywhere = {
            let geo = geo.clone();
            move |node: &Here, kind: Kind| geo.is_everywhere(node, kind)
        };
        for Called { id, by, goes } in locality::called_from_abroad(&node, everywhere).await {
            if !geo.may_wander(id.kind) || !geo.takes(by) {
                continue;
            }
            let name = geo.clusters().name(by).unwrap_or_default().to_owned();
            if !goes {
                *far.entry((id.kind.name().to_owned(), name)).or_default() += 1;
            } else {
                tracing::debug!(actor = %id, cluster = name, "an actor goes to the cluster that calls it most");
                locality::gave_way(&node, &id, &name);
                geo.yields(&node, &id);
            }
        }
        locality::far_from_callers(&node, far);
    }
}

impl Geo {
    /// Whether actors of `kind` have one instance, in whichever cluster: adaptive ones have a say of their own, and others a home.
    pub(super) fn may_wander(&self, kind: Kind) -> bool {
        let view = self.view.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let may = view.hosts(kind).is_some_and(|hosts| hosts.instances != Instances::PerCluster && !hosts.adaptive);
        may && view.homes().get(kind.name()).is_none()
    }

    /// Whether the store of `kind` is the same for all clusters, as far as this node is told: `geo.stores` says which cluster it is near.
    fn is_everywhere(&self, node: &Here, kind: Kind) -> bool {
        let store = node.kinds().find(kind).map(|entry| entry.options().store);
        store.is_some_and(|store| self.config.stores.contains_key(shown(store)))
    }

    /// Whether a cluster may have actors, and answers.
    fn takes(&self, cluster: ClusterId) -> bool {
        let is_full = self.clusters().configuration().standing(cluster) == Some(Standing::Full);
        is_full && !self.silent().contains(&cluster)
    }

    /// Lets an actor go, as the owner of its range, or tells that one.
    fn yields(self: &Arc<Self>, node: &Here, id: &ActorId) {
        let Some(directory) = node.directory() else { return };
        if let Some(owner) = directory.yields(self, node.world().now(), &Entry::new(id.clone())) {
            let said = Yields { kind: id.kind.name().to_owned(), key: (*id.key).to_owned() };
            // Plain data always encodes.
            node.tell(owner, CHANNEL, serde_json::to_vec(&said).unwrap_or_default().into());
        }
    }

    /// Another node of this cluster has an actor that had better go.
    pub(super) fn told_to_yield(self: &Arc<Self>, node: &Here, from: NodeId, payload: &[u8]) {
        let said: Result<Yields, _> = serde_json::from_slice(payload);
        let id = said.ok().and_then(|said| ActorId::new(Kind::known(&said.kind)?, said.key.as_str()).ok());
        match (id, node.directory()) {
            (Some(id), Some(directory)) if self.may_wander(id.kind) => {
                // If the range has gone on meanwhile, the actor stays until it is counted anew.
                let _ = directory.yields(self, node.world().now(), &Entry::new(id));
            }
            _ => tracing::debug!(%from, "what a node says of an actor that had better go cannot be read"),
        }
    }
}

/// How often it is looked.
const EVERY: Duration = Duration::from_secs(5);
/// The channel of control frames that this is said on.
pub(super) const CHANNEL: u8 = 3;
