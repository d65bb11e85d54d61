//! How a node sees its multi-cluster, for people.

use std::sync::PoisonError;
use std::time::Duration;

use greenroom_protocols::gsi::State;
use serde::Serialize;

use super::Geo;
use super::clusters::id_of;
use super::counts::GeoCounts;
use crate::here::Here;
use crate::observe::findings::Cluster;

/// Actors of the ranges that a node owns, by where they stand between the clusters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Standings {
    /// This cluster owns them.
    pub owned: u64,
    /// This cluster has instances of them that may not be the only ones.
    pub doubtful: u64,
    /// Other clusters are being asked.
    pub asking: u64,
    /// Other clusters own them.
    pub elsewhere: u64,
}

impl Standings {
    pub(super) fn add(&mut self, state: State, instance: bool) {
        match state {
            State::Owned(_) => self.owned += 1,
            State::Doubtful(_) => self.doubtful += 1,
            State::Requested | State::Loser if instance => self.doubtful += 1,
            State::Requested | State::Loser => self.asking += 1,
            State::Cached(_) => self.elsewhere += 1,
            State::Invalid => {}
        }
    }
}

/// One cluster, as a node sees it.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct ClusterStatus {
    /// Its name.
    pub name: String,
    /// Whether it is the node's own.
    pub own: bool,
    /// Where it is reached.
    pub gateways: Vec<String>,
    /// Whether it is about to leave.
    pub draining: bool,
    /// Whether it was added and does not take part yet.
    pub joining: bool,
    /// Whether it is taken out as lost, and may live: what it owns has not run out.
    pub lost: bool,
    /// Whether it answers.
    pub answers: bool,
    /// Why it does not.
    pub trouble: Option<String>,
    /// A round trip there, in ms; `None` before the first.
    pub round_trip_ms: Option<f64>,
    /// The list that all of its nodes work by, as far as is known; 0 if nothing is.
    pub acknowledged: u64,
    /// True if it is known to have no instance, and nothing in its partitions of reliable actors.
    pub empty: bool,
    /// By how many seconds its clock is ahead of the node's, if that is more than a minute.
    pub clock_ahead_s: Option<i64>,
}

/// A multi-cluster, as a node sees it.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct MultiCluster {
    /// The number of the list that the node works by.
    pub epoch: u64,
    /// Whether it is in force: a majority of the members of the list before it works by it.
    pub in_force: bool,
    /// Which acknowledgements a list waits for that is not in force.
    pub waits_for: Option<String>,
    /// The members of the list whose answers confirm this cluster, itself among them. A majority must, or it is fenced.
    pub confirmed_by: Vec<String>,
    /// The clusters of the list.
    pub clusters: Vec<ClusterStatus>,
    /// Why the list in its store is not looked at.
    pub list_trouble: Option<String>,
    /// Whether this cluster may be taken for lost, as no majority confirms it: pessimistic actors are refused.
    pub fenced: bool,
    /// Kinds whose actors this cluster activates without a question where they are at home in it.
    pub leases: Vec<String>,
    /// Actors of the ranges that this node owns.
    pub actors: Standings,
    /// What this node has counted.
    pub counts: GeoCounts,
    /// The last states of which duplicates here had updates that are [lost](GeoCounts::updates_lost).
    pub lost_of: Vec<String>,
}

impl Geo {
    /// Returns the other clusters, as findings rest on them.
    pub(crate) fn others(&self) -> Vec<Cluster> {
        let (list, silent) = (self.clusters(), self.silent());
        let clocks = self.clocks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let others = list.clusters.keys().map(|name| (name, id_of(name))).filter(|(_, id)| *id != self.me());
        let told = others.map(|(name, id)| Cluster {
            name: name.clone(),
            answers: !silent.contains(&id),
            joining: list.joining.contains(name),
            trouble: self.mesh.get().and_then(|mesh| mesh.trouble(id)),
            clock_ahead_s: clocks.get(&id).copied(),
        });
        told.collect()
    }

    /// The multi-cluster, as this node sees it.
    pub(crate) fn status(&self, node: &Here) -> MultiCluster {
        let list = self.clusters();
        let clocks = self.clocks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (silent, acknowledged) = (self.silent(), self.acknowledged(node));
        let trip = |id| self.mesh.get().and_then(|mesh| mesh.trip(id)).map(|trip: Duration| trip.as_secs_f64() * 1e3);
        let clusters = list.clusters.iter().map(|(name, cluster)| {
            let id = id_of(name);
            let said = acknowledged.get(&id).copied().unwrap_or_default();
            let own = id == self.me();
            ClusterStatus {
                name: name.clone(),
                own,
                gateways: cluster.gateways.clone(),
                draining: cluster.draining && list.is_member(name),
                joining: list.joining.contains(name),
                lost: list.lost.contains(name),
                trouble: self.mesh.get().and_then(|mesh| mesh.trouble(id)),
                answers: own || trip(id).is_some() && !silent.contains(&id),
                round_trip_ms: trip(id),
                acknowledged: said.epoch.0,
                empty: said.empty,
                clock_ahead_s: clocks.get(&id).copied(),
            }
        });
        let mut actors = Standings::default();
        if let Some(directory) = node.directory() {
            directory.count_abroad(&mut actors);
        }
        let list_trouble = self.listing_trouble.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (leases, counts) = (self.leases(), self.counts().now());
        let (fenced, lost_of) = (self.is_fenced(), self.counts().lost_of());
        let confirmed = self.term.keeper().confirmations(self.world.now());
        MultiCluster {
            epoch: list.epoch,
            in_force: self.is_in_force(),
            waits_for: self.waits_for(),
            confirmed_by: list.names(confirmed.given),
            clusters: clusters.collect(),
            list_trouble,
            fenced,
            leases,
            actors,
            counts,
            lost_of,
        }
    }
}
