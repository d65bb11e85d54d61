//! The cluster as the routing of messages needs to see it.

use std::collections::BTreeMap;
use std::sync::Arc;

use greenroom_protocols::names::near_names;
use greenroom_protocols::node::{Member, NodeId, Status, View};

use crate::actor::key::Kind;

/// A view, with what is asked of it often made ready.
#[derive(Debug, Default)]
pub(crate) struct ClusterView {
    pub(crate) view: Arc<View>,
    hosts: BTreeMap<usize, KindHosts>,
}

/// The nodes that host a kind and get activations of it: none, if all that host it are about to leave.
#[derive(Clone, Debug, Default)]
pub(crate) struct KindHosts {
    pub(crate) nodes: Vec<NodeId>,
    pub(crate) placement: String,
}

impl ClusterView {
    pub(crate) fn new(view: Arc<View>) -> Self {
        let mut hosts: BTreeMap<usize, KindHosts> = BTreeMap::new();
        for (id, member) in view.active() {
            for kind in &member.kinds {
                let known = hosts.entry(Kind::intern(&kind.name).index()).or_default();
                if !member.draining {
                    known.nodes.push(id);
                }
                known.placement.clone_from(&kind.placement);
            }
        }
        Self { view, hosts }
    }

    /// The nodes that host `kind`, if any has it.
    pub(crate) fn hosts(&self, kind: Kind) -> Option<&KindHosts> {
        self.hosts.get(&kind.index())
    }

    /// Kinds with names like `wanted` that some node hosts.
    pub(crate) fn near_kinds(&self, wanted: &str) -> Vec<String> {
        let names = self.view.active().flat_map(|(_, member)| member.kinds.iter().map(|kind| kind.name.as_str()));
        near_names(wanted, names)
    }

    /// A node that has not been declared dead.
    pub(crate) fn member(&self, node: NodeId) -> Option<&Member> {
        self.view.members.get(&node).filter(|member| member.status != Status::Dead)
    }
}
