//! Where partitions belong: each node has its share of them.

use greenroom_protocols::delivery;
use greenroom_protocols::node::NodeId;

use crate::actor::key::{ActorId, Kind, stable_hash};
use crate::cluster::view::{ClusterView, KindHosts};
use crate::here::Here;
use crate::here::built_in::RELIABLE;

/// The node that each of `partitions` belongs on; empty if nobody hosts them.
pub(super) fn homes(view: &ClusterView, kind: Kind, partitions: u32) -> Vec<NodeId> {
    view.hosts(kind).map_or_else(Vec::new, |hosts| homes_among(view, hosts, partitions))
}

/// The node that the partition `actor` belongs on.
pub(super) fn home(node: &Here, actor: &ActorId, hosts: &KindHosts) -> Option<NodeId> {
    let partition: usize = actor.key.parse().ok()?;
    homes_among(&node.view(), hosts, node.config().reliable.partitions).get(partition).copied()
}

/// Among the nodes that have most of the reliable kinds, as hosts come and go. By the nodes' names, so that one that restarts gets
/// its partitions back.
fn homes_among(view: &ClusterView, hosts: &KindHosts, partitions: u32) -> Vec<NodeId> {
    let has = |id: &NodeId| {
        let kinds = view.member(*id).map_or(&[][..], |member| &member.kinds);
        kinds.iter().filter(|kind| kind.placement == RELIABLE).count()
    };
    let most = hosts.nodes.iter().map(has).max().unwrap_or_default();
    let able: Vec<NodeId> = hosts.nodes.iter().copied().filter(|id| has(id) == most).collect();
    let named = |id: &NodeId| view.member(*id).map_or(id.0, |member| stable_hash("node", &member.name));
    let names: Vec<u64> = able.iter().map(named).collect();
    delivery::homes(&names, partitions).into_iter().map(|position| able[position]).collect()
}
