//! What nodes tell each other of their multi-cluster: the list of clusters that they work by, and how far they are with it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::BytesMut;
use greenroom_protocols::gsi::{Acknowledged, ClusterId, ConfigEpoch};
use greenroom_protocols::node::NodeId;
use greenroom_wire::Encoder;
use greenroom_wire::codec::{self, Codec};
use serde::{Deserialize, Serialize};

use super::{Clusters, Event, Geo};
use crate::node::shared::Shared;

/// One node's word. What a later version adds is skipped.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct News {
    list: Clusters,
    /// How far the sender's cluster is, as far as the sender knows.
    #[serde(default)]
    cluster: Acknowledged,
    /// How far the sender is.
    #[serde(default)]
    own: Acknowledged,
}

/// How far others are.
#[derive(Default)]
pub(super) struct Progress(Mutex<Said>);

#[derive(Default)]
struct Said {
    nodes: BTreeMap<NodeId, Acknowledged>,
    clusters: BTreeMap<ClusterId, Acknowledged>,
}

impl News {
    /// What `node` has to tell.
    pub(crate) fn of(geo: &Geo, node: &Shared) -> Self {
        Self { list: (*geo.clusters()).clone(), cluster: geo.of_cluster(node), own: geo.own(node) }
    }

    pub(super) fn put(&self, encoder: &Encoder, batch: &mut BytesMut) {
        let written =
            encoder.control(batch, CHANNEL, |batch| codec::encode(Codec::MessagePack, FORMAT_VERSION, self, batch));
        if let Err(error) = written {
            tracing::error!(%error, "the news for other clusters cannot be written");
        }
    }

    /// Reads what another cluster tells.
    pub(super) fn decode(payload: &[u8]) -> Option<Self> {
        codec::decode(payload).ok()
    }
}

impl Geo {
    /// How far this node is with the list that it works by.
    fn own(&self, node: &Shared) -> Acknowledged {
        let empty = node.directory().is_none_or(|directory| directory.is_empty_abroad());
        Acknowledged { epoch: ConfigEpoch(self.clusters().epoch), empty }
    }

    /// How far this node's cluster is: as far as the last of its nodes.
    fn of_cluster(&self, node: &Shared) -> Acknowledged {
        let view = node.view();
        let said = self.progress.0.lock().unwrap_or_else(PoisonError::into_inner);
        let others = view.view.active().map(|(id, _)| id).filter(|id| *id != node.me());
        others.fold(self.own(node), |all, id| {
            let one = said.nodes.get(&id).copied().unwrap_or_default();
            Acknowledged { epoch: all.epoch.min(one.epoch), empty: all.empty && one.empty }
        })
    }

    /// How far all clusters are, by their numbers.
    pub(crate) fn acknowledged(&self, node: &Shared) -> BTreeMap<ClusterId, Acknowledged> {
        let own = self.of_cluster(node);
        let said = self.progress.0.lock().unwrap_or_else(PoisonError::into_inner);
        said.clusters.iter().map(|(id, said)| (*id, *said)).chain([(self.me(), own)]).collect()
    }

    /// Takes in what a node of another cluster tells.
    pub(super) fn told_by_cluster(self: &Arc<Self>, node: &Shared, from: ClusterId, news: News) {
        let listed = self.clusters().name(from).is_some();
        if listed {
            self.progress.0.lock().unwrap_or_else(PoisonError::into_inner).clusters.insert(from, news.cluster);
        }
        self.adopt(node, news.list);
    }

    /// Takes in what a node of this cluster tells.
    pub(crate) fn told_by_node(self: &Arc<Self>, node: &Shared, from: NodeId, news: News) {
        {
            let view = node.view();
            let mut said = self.progress.0.lock().unwrap_or_else(PoisonError::into_inner);
            said.nodes.insert(from, news.own);
            said.nodes.retain(|id, _| view.member(*id).is_some());
        }
        self.adopt(node, news.list);
    }

    /// Works by `list` from now on, if it is newer; whether it is.
    pub(crate) fn adopt(self: &Arc<Self>, node: &Shared, list: Clusters) -> bool {
        let known = self.clusters();
        if list.epoch < known.epoch || *known == list {
            return false;
        }
        if list.epoch == known.epoch {
            tracing::error!(
                epoch = list.epoch,
                "two different lists of clusters have the same number; give one of them a higher one"
            );
            return false;
        }
        if let Err(why) = list.check() {
            tracing::error!(epoch = list.epoch, why, "a list of clusters cannot be used");
            return false;
        }
        let configuration = list.configuration();
        for cluster in configuration.clusters.keys().filter(|id| known.name(**id).is_none()) {
            self.note_silent(*cluster, true);
        }
        tracing::info!(epoch = list.epoch, clusters = list.clusters.len(), "a new list of clusters is in force");
        *self.clusters.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(list);
        if let Some(directory) = node.directory() {
            directory.all_abroad(self, self.world.now(), || Event::Configuration(configuration.clone()));
        }
        self.list_changed.notify_one();
        true
    }
}

/// The channel of control frames on connections between clusters.
pub(super) const CHANNEL: u8 = 1;
/// Version of the news.
const FORMAT_VERSION: u8 = 1;
