//! The cluster as the routing of messages needs to see it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use greenroom_protocols::names::near_names;
use greenroom_protocols::node::{Instances, Member, NodeId, Status, View};
use greenroom_protocols::versions::{self, Offer};

use crate::actor::key::Kind;
use crate::actor::version_gap::VersionGap;
use crate::here::built_in::is_internal;

/// A view, with what is asked of it often made ready.
#[derive(Debug, Default)]
pub(crate) struct ClusterView {
    pub(crate) view: Arc<View>,
    hosts: BTreeMap<usize, KindHosts>,
    /// Where actors are at home, of kinds that have homes and whose hosts agree on them.
    homes: BTreeMap<String, String>,
}

/// The nodes that host a kind and get activations of it: none, if all that host it are about to leave, or do not read its
/// states as they are written.
#[derive(Clone, Debug, Default)]
pub(crate) struct KindHosts {
    pub(crate) nodes: Vec<NodeId>,
    pub(crate) placement: String,
    /// How many instances its actors have in a multi-cluster.
    pub(crate) instances: Instances,
    /// Whether that changes with how each actor is used.
    pub(crate) adaptive: bool,
    /// Where its actors are at home in a multi-cluster; empty for nowhere, or if its hosts do not agree.
    pub(crate) home: String,
    /// Those that can write its states so that all of them read them; empty if all can.
    able: Vec<NodeId>,
    /// Which callers each of them serves; empty if all host the first version, as those of most kinds do.
    offers: Vec<Offer>,
}

impl KindHosts {
    /// Which callers the nodes serve, if they host anything but the first version.
    pub(crate) fn offers(&self) -> &[Offer] {
        &self.offers
    }

    /// Which callers `node` serves, if it gets activations of the kind.
    pub(crate) fn offer_of(&self, node: NodeId) -> Option<Offer> {
        let at = self.nodes.iter().position(|known| *known == node)?;
        Some(self.offers.get(at).copied().unwrap_or(Offer::FIRST))
    }

    /// The nodes of the newest version that serves callers of `wanted`; of them those that can write its states so that all
    /// read them, if there are any.
    pub(crate) fn serving(&self, wanted: u16) -> Cow<'_, [NodeId]> {
        if self.offers.is_empty() && self.able.is_empty() && Offer::FIRST.serves(wanted) {
            return Cow::Borrowed(&self.nodes);
        }
        Cow::Owned(self.serving_among(wanted, |_| true))
    }

    /// As [`serving`](Self::serving), of the nodes that pass `filter`.
    pub(crate) fn serving_among(&self, wanted: u16, filter: impl Fn(NodeId) -> bool) -> Vec<NodeId> {
        let offers = self.offers.iter().copied().chain(std::iter::repeat(Offer::FIRST));
        let mut newest =
            versions::newest(self.nodes.iter().copied().zip(offers).filter(|(node, _)| filter(*node)), wanted);
        if newest.iter().any(|node| self.able.contains(node)) {
            newest.retain(|node| self.able.contains(node));
        }
        newest
    }
}

impl ClusterView {
    pub(crate) fn new(view: Arc<View>) -> Self {
        let mut hosts: BTreeMap<usize, KindHosts> = BTreeMap::new();
        for (id, member) in view.active() {
            for kind in &member.kinds {
                // One for whose name there is no room is unknown here.
                let Some(offered) = Kind::offered(&kind.name) else { continue };
                let new = || KindHosts { home: kind.home.clone(), ..KindHosts::default() };
                let known = hosts.entry(offered.index()).or_insert_with(new);
                if known.home != kind.home {
                    known.home.clear();
                }
                if !member.draining && view.states.unread(kind).is_none() {
                    known.nodes.push(id);
                    known.offers.push(kind.offer());
                    if view.states.can_write(kind) {
                        known.able.push(id);
                    }
                }
                known.placement.clone_from(&kind.placement);
                known.instances = kind.instances;
                known.adaptive = kind.adaptive;
            }
        }
        for known in hosts.values_mut().filter(|known| known.offers.iter().all(|offer| *offer == Offer::FIRST)) {
            known.offers = Vec::new();
        }
        for known in hosts.values_mut().filter(|known| known.able.len() == known.nodes.len()) {
            known.able = Vec::new();
        }
        let mut homes = BTreeMap::new();
        for kind in view.active().flat_map(|(_, member)| &member.kinds).filter(|kind| !kind.home.is_empty()) {
            let known = Kind::known(&kind.name).and_then(|known| hosts.get(&known.index()));
            if known.is_some_and(|known| known.home == kind.home && known.instances != Instances::PerCluster) {
                homes.insert(kind.name.clone(), kind.home.clone());
            }
        }
        Self { view, hosts, homes }
    }

    /// Where actors are at home, by kind.
    pub(crate) fn homes(&self) -> &BTreeMap<String, String> {
        &self.homes
    }

    /// The nodes that host `kind`, if any has it.
    pub(crate) fn hosts(&self, kind: Kind) -> Option<&KindHosts> {
        self.hosts.get(&kind.index())
    }

    /// Whether `node` may know more of the cluster than is known here: it has joined since.
    pub(crate) fn is_behind(&self, node: NodeId) -> bool {
        match self.view.members.get(&node) {
            Some(member) => member.status == Status::Joining,
            None => node.0 >= self.view.next_node,
        }
    }

    /// That no node serves callers of `wanted`, with what there is.
    pub(crate) fn gap(&self, kind: &str, wanted: u16) -> VersionGap {
        let hosts = self.view.active().flat_map(|(_, member)| {
            let hosted = member.kinds.iter().filter(|hosted| hosted.name == kind);
            hosted.map(|hosted| (member.name.as_str(), hosted.offer()))
        });
        VersionGap::nowhere(kind, wanted, hosts)
    }

    /// That no node that hosts `kind` reads a state of it as it is written; `None` if some do, or none hosts it.
    pub(crate) fn unread(&self, kind: &str) -> Option<VersionGap> {
        let states = &self.view.states;
        let hosts = self.view.serving().flat_map(|(_, member)| {
            let hosted = member.kinds.iter().filter(|hosted| hosted.name == kind);
            hosted.map(|hosted| (member.name.as_str(), states.unread(hosted)))
        });
        let unread: Option<Vec<_>> = hosts.map(|(name, unread)| unread.map(|unread| (name, unread))).collect();
        let unread = unread?;
        let state = unread.first()?.1.0;
        Some(VersionGap::unread(
            kind,
            state,
            states.of(kind, state),
            unread.iter().map(|(name, (_, reads))| (*name, *reads)),
        ))
    }

    /// Kinds with names like `wanted` that some node hosts.
    pub(crate) fn near_kinds(&self, wanted: &str) -> Vec<String> {
        let names = self.view.active().flat_map(|(_, member)| member.kinds.iter().map(|kind| kind.name.as_str()));
        near_names(wanted, names.filter(|name| !is_internal(name)))
    }

    /// A node that has not been declared dead.
    pub(crate) fn member(&self, node: NodeId) -> Option<&Member> {
        self.view.members.get(&node).filter(|member| member.status != Status::Dead)
    }
}
