//! Where actors are at home, and the kinds that this cluster holds the lease of: their actors it activates without a question.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError, RwLock};

use greenroom_protocols::gsi::{ConfigEpoch, Home};

use super::Geo;
use super::clusters::id_of;
use super::word::AtHome;
use crate::actor::interface::Why;
use crate::actor::key::Kind;
use crate::cluster::directory::Entry;
use crate::cluster::{ControlMessage, Order};
use crate::here::Here;

/// What a node knows of homes.
#[derive(Default)]
pub(super) struct Homes {
    /// By what this node was last found to own nothing away from home.
    found: Mutex<AtHome>,
    /// A list, and the kinds that this cluster holds the lease of while that is in force.
    leased: RwLock<(u64, BTreeSet<String>)>,
}

impl Geo {
    /// Where the actor is at home, if its kind has homes.
    pub(super) fn home(&self, key: &Entry) -> Option<Home> {
        let view = self.view.read().unwrap_or_else(PoisonError::into_inner);
        let home = view.homes().get(key.kind().name())?;
        Some(match home.strip_prefix("lease:") {
            Some(cluster) => Home::At(id_of(cluster), key.hash()),
            None => Home::Hash(key.hash()),
        })
    }

    /// The list for which this cluster may activate actors of `kind` that are at home in it without a question.
    pub(super) fn lease(&self, kind: Kind) -> Option<ConfigEpoch> {
        let leased = self.homes.leased.read().unwrap_or_else(PoisonError::into_inner);
        (leased.1.contains(kind.name()) && !self.is_fenced()).then_some(ConfigEpoch(leased.0))
    }

    /// The kinds that this cluster holds the lease of.
    pub(super) fn leases(&self) -> Vec<String> {
        let leased = self.homes.leased.read().unwrap_or_else(PoisonError::into_inner);
        if leased.0 == self.clusters().epoch { leased.1.iter().cloned().collect() } else { Vec::new() }
    }

    /// Whether this node owns nothing away from home by this list. What does is ended.
    pub(super) fn at_home(&self, node: &Here, epoch: u64) -> AtHome {
        let homes = self.view.read().unwrap_or_else(PoisonError::into_inner).homes().clone();
        let all = AtHome { settled: epoch, homes };
        let mut found = self.homes.found.lock().unwrap_or_else(PoisonError::into_inner);
        // From then on nothing becomes owned away from home.
        if *found == all {
            return all;
        }
        let configuration = self.clusters().configuration();
        let away =
            |key: &Entry| self.home(key).and_then(|home| configuration.home(home)).is_some_and(|at| at != self.me());
        let owns_none = node.directory().is_none_or(|directory| directory.owns_none_away());
        if configuration.epoch.0 == epoch && self.leave(node, away) && owns_none {
            found.clone_from(&all);
            return all;
        }
        AtHome { settled: 0, ..all }
    }

    /// Ends the activations here that this cluster owns and is to give up; whether there are none.
    pub(super) fn leave(&self, node: &Here, gives_up: impl Fn(&Entry) -> bool) -> bool {
        let owned = node.directory().map(|directory| directory.owned_here(gives_up)).unwrap_or_default();
        for (key, epoch) in &owned {
            let end = ControlMessage::End { key: key.clone(), epoch: *epoch, why: Why::Leaving };
            self.order(Order::Say(node.me(), end));
        }
        owned.is_empty()
    }

    /// Looks for which kinds the lease is this cluster's: all clusters must have said that they own nothing away from home, by
    /// this list and the same homes.
    pub(super) fn settle(&self, node: &Here) {
        let homes = self.view.read().unwrap_or_else(PoisonError::into_inner).homes().clone();
        let list = self.clusters();
        let mut leased = BTreeSet::new();
        if !homes.is_empty() && list.epoch > 0 && !self.is_fenced() {
            let said = self.homes_of_clusters(node);
            let agrees = |cluster: &String, kind: &String, home: &String| {
                said.get(&id_of(cluster))
                    .is_some_and(|said| said.settled == list.epoch && said.homes.get(kind) == Some(home))
            };
            // What a lost one may have at home is its own still.
            let members = list.clusters.keys().filter(|name| !list.joining.contains(*name));
            let all = |(kind, home): &(String, String)| members.clone().all(|name| agrees(name, kind, home));
            leased = homes.into_iter().filter(all).map(|(kind, _)| kind).collect();
        }
        *self.homes.leased.write().unwrap_or_else(PoisonError::into_inner) = (list.epoch, leased);
    }
}
