//! What nodes tell each other of their multi-cluster: the list of clusters that they work by, and how far they are with it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::BytesMut;
use greenroom_protocols::gsi::{Acknowledged, ClusterId, ConfigEpoch};
use greenroom_protocols::node::NodeId;
use greenroom_wire::Encoder;
use greenroom_wire::codec::{self, Codec};

use super::word::{AtHome, News, Word};
use super::{Clusters, Event, Geo};
use crate::cluster::directory::Entry;
use crate::here::Here;
use crate::observe::events::Happened;

/// How far others are.
#[derive(Default)]
pub(super) struct Progress(Mutex<Said>);

#[derive(Default)]
struct Said {
    nodes: BTreeMap<NodeId, Word>,
    clusters: BTreeMap<ClusterId, Word>,
}

impl Said {
    /// Takes in what another node has heard of a cluster, if it is later than what is known: what is true of a list of clusters
    /// stays true while that is in force.
    fn relayed(&mut self, cluster: ClusterId, draining: bool, word: Word) {
        let known = self.clusters.entry(cluster).or_default();
        if word.acknowledged.epoch > known.acknowledged.epoch {
            known.acknowledged = word.acknowledged;
        } else if word.acknowledged.epoch == known.acknowledged.epoch {
            // What leaves and is empty stays so.
            known.acknowledged.empty |= draining && word.acknowledged.empty;
        }
        if word.home.settled > known.home.settled {
            known.home = word.home;
        }
    }
}

impl News {
    /// What `node` has to tell.
    pub(crate) fn of(geo: &Geo, node: &Here) -> Self {
        let (cluster, own) = (geo.of_cluster(node), geo.own(node));
        let heard = geo.progress.0.lock().unwrap_or_else(PoisonError::into_inner).clusters.clone();
        Self {
            list: (*geo.clusters()).clone(),
            cluster: cluster.acknowledged,
            own: own.acknowledged,
            cluster_home: cluster.home,
            own_home: own.home,
            own_view: own.view,
            heard,
            wall_s: geo.world.wall().as_secs(),
            lost_after_ms: u64::try_from(geo.config.lost_after().as_millis()).unwrap_or(u64::MAX),
            in_force: geo.is_in_force(),
            rival: geo.rival_number(),
        }
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
    /// True if this cluster drains, or is in the list no more.
    pub(super) fn is_leaving(&self) -> bool {
        self.clusters().clusters.get(self.name()).is_none_or(|cluster| cluster.draining)
    }

    /// How far this node is with the list that it works by.
    fn own(&self, node: &Here) -> Word {
        let list = self.clusters();
        let single = |key: &Entry| self.is_single(key.kind());
        if self.is_leaving() {
            self.leave(node, single);
        }
        let (empty, view) = node.directory().map_or((true, 0), |directory| directory.is_vacant_abroad(single));
        // Reliable actors do not leave with their cluster: they are in its journal.
        let empty = empty && !node.may_hold_reliable_actors();
        Word {
            acknowledged: Acknowledged { epoch: ConfigEpoch(list.epoch), empty },
            home: self.at_home(node, list.epoch),
            view,
        }
    }

    /// How far this node's cluster is: as far as the last of its nodes.
    pub(super) fn of_cluster(&self, node: &Here) -> Word {
        let view = node.view();
        let own = self.own(node);
        let said = self.progress.0.lock().unwrap_or_else(PoisonError::into_inner);
        let others = view.view.active().map(|(id, _)| id).filter(|id| *id != node.me());
        others.fold(own, |all, id| {
            let one = said.nodes.get(&id).cloned().unwrap_or_default();
            let epoch = all.acknowledged.epoch.min(one.acknowledged.epoch);
            // Of two views one node may have had a range in the one, and another node have it in the other.
            let now = one.view == all.view || one.view == 0;
            let empty = all.acknowledged.empty && one.acknowledged.empty && now;
            Word { acknowledged: Acknowledged { epoch, empty }, home: all.home.and(&one.home), view: all.view }
        })
    }

    /// How far all clusters are, by their numbers.
    pub(crate) fn acknowledged(&self, node: &Here) -> BTreeMap<ClusterId, Acknowledged> {
        let own = self.of_cluster(node);
        let said = self.progress.0.lock().unwrap_or_else(PoisonError::into_inner);
        let others = said.clusters.iter().map(|(id, said)| (*id, said.acknowledged));
        others.chain([(self.me(), own.acknowledged)]).collect()
    }

    /// Forgets what other clusters have said.
    pub(super) fn forget_clusters(&self) {
        self.progress.0.lock().unwrap_or_else(PoisonError::into_inner).clusters.clear();
    }

    /// What all clusters say of actors that have homes.
    pub(super) fn homes_of_clusters(&self, node: &Here) -> BTreeMap<ClusterId, AtHome> {
        let own = self.of_cluster(node);
        let said = self.progress.0.lock().unwrap_or_else(PoisonError::into_inner);
        let others = said.clusters.iter().map(|(id, said)| (*id, said.home.clone()));
        others.chain([(self.me(), own.home)]).collect()
    }

    /// Takes in what a node of another cluster tells.
    pub(super) fn told_by_cluster(self: &Arc<Self>, node: &Here, from: ClusterId, news: News) {
        self.told_term(news.lost_after_ms);
        if self.answers_to(from) {
            self.compare_clocks(from, news.wall_s);
            let word = Word { acknowledged: news.cluster, home: news.cluster_home, view: 0 };
            self.progress.0.lock().unwrap_or_else(PoisonError::into_inner).clusters.insert(from, word);
        }
        self.hear(node, news.list, news.in_force);
        self.look_at_votes(node);
        self.settle(node);
    }

    /// Notes how far the clock of another cluster is from this node's, if that is more than people would leave so.
    fn compare_clocks(&self, from: ClusterId, wall_s: u64) {
        let ahead = (wall_s != 0).then(|| wall_s as i64 - self.world.wall().as_secs() as i64);
        let ahead = ahead.filter(|ahead| ahead.unsigned_abs() > CLOCK_APART_S_MAX);
        let mut known = self.clocks.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match ahead {
            Some(ahead) => known.insert(from, ahead),
            None => known.remove(&from),
        };
        if let (Some(ahead), None) = (ahead, before) {
            let list = self.clusters();
            tracing::error!(
                cluster = list.name(from),
                ahead_s = ahead,
                "the clock of another cluster is far from this node's: reminders, certificates and tokens go wrong; set both by NTP"
            );
        }
    }

    /// Takes in what a node of this cluster tells.
    pub(crate) fn told_by_node(self: &Arc<Self>, node: &Here, from: NodeId, news: News) {
        {
            let view = node.view();
            let mut said = self.progress.0.lock().unwrap_or_else(PoisonError::into_inner);
            said.nodes.insert(from, Word { acknowledged: news.own, home: news.own_home, view: news.own_view });
            said.nodes.retain(|id, _| view.member(*id).is_some());
            let list = self.clusters();
            for (cluster, word) in news.heard {
                if let Some(name) = list.name(cluster).filter(|_| cluster != self.me()) {
                    said.relayed(cluster, list.clusters[name].draining, word);
                }
            }
        }
        self.hear(node, news.list, news.in_force);
        self.hear_rival(node, news.rival);
        self.look_at_votes(node);
        self.settle(node);
    }

    /// Works by `list` from now on: it is newer than the one before, and in the membership table.
    pub(super) fn work_by(self: &Arc<Self>, node: &Here, list: Clusters) {
        let known = self.clusters();
        let configuration = list.configuration();
        for cluster in configuration.clusters.keys().filter(|id| known.name(**id).is_none()) {
            self.note_silent(*cluster, true);
        }
        tracing::info!(epoch = list.epoch, clusters = list.clusters.len(), "this node works by a new list of clusters");
        if !list.vouched.is_empty() {
            let removed: Vec<&str> = list.vouched.iter().map(String::as_str).collect();
            tracing::warn!(
                epoch = list.epoch,
                removed = removed.join(", "),
                "an operator has vouched that no node of these clusters runs: their ownerships are free at once"
            );
        }
        node.happened(Happened::ClustersChanged { epoch: list.epoch, clusters: list.clusters.len() });
        *self.clusters.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(list);
        if let Some(mesh) = self.mesh.get() {
            let before = known.configuration().clusters.into_keys();
            before.filter(|id| !self.answers_to(*id)).for_each(|id| mesh.leave(id));
            // A cluster that is taken out may have saved while it was not heard.
            self.reload_all();
        }
        if let Some(directory) = node.directory() {
            directory.all_abroad(self, self.world.now(), || Event::Configuration(configuration.clone()));
        }
        node.versioned().post().look_around();
        self.list_changed.notify_one();
    }
}

/// Seconds that the clocks of two clusters may be apart.
const CLOCK_APART_S_MAX: u64 = 60;
/// The channel of control frames on connections between clusters.
pub(super) const CHANNEL: u8 = 1;
/// Version of the news.
const FORMAT_VERSION: u8 = 1;
