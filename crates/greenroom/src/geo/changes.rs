//! Changes of the list of clusters, one step at a time (G3 of GSI).

use std::collections::BTreeMap;
use std::sync::Arc;

use greenroom_protocols::gsi::{Acknowledged, Change, ChangeRefused, ClusterId, ConfigEpoch};

use super::clusters::id_of;
use super::config::GeoCluster;
use super::listing::Unwritten;
use super::{Clusters, Geo};
use crate::here::Here;

/// What an operator wants of the list.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ClusterChange {
    /// A cluster is to join, with these gateways.
    Add(String, Vec<String>),
    /// A cluster that was added takes part. Nodes make this change by themselves, once its nodes work by the list.
    Admit(String),
    /// A cluster is to give up what it has.
    Drain(String),
    /// A drained cluster leaves, or one that was added and never came.
    Remove(String),
    /// A cluster is taken out that will never answer again. Nodes drop it by themselves once what it owns, should it live, has run out
    /// ([`GeoConfig::lost_after`](field@crate::GeoConfig::lost_after)); from then on that is activated elsewhere.
    RemoveLost(String),
}

/// Why the list of clusters was not changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClustersUnchanged {
    /// The node was told of no multi-cluster.
    #[error("this node's cluster is alone: no `geo.clusters` is configured")]
    Alone,
    /// Where the list is in no store only one node makes changes, so that they follow each other: of the first cluster that answers.
    #[error(
        "changes are made at node {node:?} of cluster {cluster:?}; ask there, or keep the list in a store (`geo.store`) to make them at any node"
    )]
    Elsewhere {
        /// The cluster.
        cluster: String,
        /// The node, if it is of this cluster.
        node: String,
    },
    /// The change does not apply, or the one before is not complete. The text says what helps.
    #[error("{0}")]
    Refused(String),
}

impl Geo {
    /// Changes the list, if this node may and the last change is complete.
    pub(crate) async fn change(self: &Arc<Self>, node: &Here, wish: &ClusterChange) -> Result<(), ClustersUnchanged> {
        let Some(listing) = &self.listing else {
            let stands_in = self.makes_changes(node)?;
            let list = self.clusters();
            let mut next = self.changed(node, &list, wish)?;
            next.epoch = list.configuration().number_after(self.me(), stands_in).0;
            self.adopt(node, next);
            return Ok(());
        };
        let stored = listing.read().await.map_err(ClustersUnchanged::Refused)?;
        let version = stored.as_ref().map(|(_, version)| version.clone());
        let list = match stored {
            Some((list, _)) if list.epoch > self.clusters().epoch => {
                self.adopt(node, list.clone());
                Arc::new(list)
            }
            _ => self.clusters(),
        };
        let next = self.changed(node, &list, wish)?;
        match listing.write(&next, version.as_ref()).await {
            Ok(()) => {
                self.adopt(node, next);
                Ok(())
            }
            Err(Unwritten::Overtaken) => Err(ClustersUnchanged::Refused(
                "another change was made at the same time; see `greenroom clusters status`, and try again if it is still wanted"
                    .to_owned(),
            )),
            Err(Unwritten::Failed(why)) => Err(ClustersUnchanged::Refused(why)),
        }
    }

    /// Has the clusters take part that were added and work by the list by now, and drops those that are lost and own nothing more.
    pub(super) async fn finish_changes(self: &Arc<Self>, node: &Here) {
        let list = self.clusters();
        if list.joining.is_empty() && list.lost.is_empty() || self.makes_changes(node).is_err() {
            return;
        }
        let (configuration, acknowledged) = (list.configuration(), self.known_of(node, &list));
        let admitted = configuration.admissible(&acknowledged).find_map(|cluster| list.name(cluster));
        let dropped =
            list.lost.iter().find(|name| configuration.change(Change::Drop(id_of(name)), &acknowledged).is_ok());
        let admitted = admitted.map(|name| ClusterChange::Admit(name.to_owned()));
        let next = admitted.or_else(|| dropped.map(|name| ClusterChange::Remove(name.clone())));
        if let Some(change) = next
            && let Err(why) = self.change(node, &change).await
        {
            tracing::debug!(?change, %why, "a change of the list of clusters is not finished yet");
        }
    }

    /// What clusters have acknowledged, and for those that are lost what is known without their word.
    fn known_of(&self, node: &Here, list: &Clusters) -> BTreeMap<ClusterId, Acknowledged> {
        let mut all = self.acknowledged(node);
        if !list.lost.is_empty() {
            let empty = self.has_run_out(node, list);
            let said = Acknowledged { epoch: ConfigEpoch(list.epoch), empty };
            all.extend(list.lost.iter().map(|name| (id_of(name), said)));
        }
        all
    }

    /// Without a store only one node makes changes, so that they follow each other: one of the first cluster that answers. Whether
    /// that stands in for another one.
    fn makes_changes(&self, node: &Here) -> Result<bool, ClustersUnchanged> {
        let (list, silent) = (self.clusters(), self.silent());
        let mut members = list.clusters.keys().filter(|name| list.is_member(name)).peekable();
        let by_right = members.peek().is_some_and(|first| *first == self.name());
        let first = members.find(|name| *name == self.name() || !silent.contains(&id_of(name)));
        let first = first.map_or("", String::as_str);
        let view = node.view();
        let maker = view.view.active().next();
        if first == self.name() && maker.is_some_and(|(id, _)| id == node.me()) {
            return Ok(!by_right);
        }
        let own = maker.filter(|_| first == self.name()).map(|(_, member)| member.name.clone());
        Err(ClustersUnchanged::Elsewhere { cluster: first.to_owned(), node: own.unwrap_or_else(|| "any".to_owned()) })
    }

    /// The list after a change.
    fn changed(&self, node: &Here, list: &Clusters, wish: &ClusterChange) -> Result<Clusters, ClustersUnchanged> {
        let (name, change) = match wish {
            ClusterChange::Add(name, _) => (name, Change::Add(id_of(name))),
            ClusterChange::Admit(name) => (name, Change::Admit(id_of(name))),
            ClusterChange::Drain(name) => (name, Change::Drain(id_of(name))),
            ClusterChange::Remove(name) => (name, Change::Drop(id_of(name))),
            ClusterChange::RemoveLost(name) => (name, Change::Lose(id_of(name))),
        };
        if matches!(wish, ClusterChange::RemoveLost(_))
            && !self.silent().contains(&id_of(name))
            && list.clusters.contains_key(name)
        {
            return Err(ClustersUnchanged::Refused(format!(
                "cluster {name:?} is not lost: it answers; drain it and remove it then, or stop its nodes"
            )));
        }
        let changed = list.configuration().change(change, &self.known_of(node, list));
        let changed = changed.map_err(|refused| ClustersUnchanged::Refused(explained(list, name, &refused)))?;
        let mut next = Clusters { epoch: changed.epoch.0, ..list.clone() };
        match wish {
            ClusterChange::Add(name, gateways) => {
                next.clusters.insert(name.clone(), GeoCluster { draining: true, ..GeoCluster::at(gateways) });
                next.joining.insert(name.clone());
            }
            ClusterChange::Admit(name) => {
                if let Some(cluster) = next.clusters.get_mut(name) {
                    cluster.draining = false;
                }
                next.joining.remove(name);
            }
            ClusterChange::Drain(name) => {
                if let Some(cluster) = next.clusters.get_mut(name) {
                    cluster.draining = true;
                }
            }
            ClusterChange::RemoveLost(name) if changed.standing(id_of(name)).is_some() => {
                if let Some(cluster) = next.clusters.get_mut(name) {
                    cluster.draining = true;
                }
                next.lost.insert(name.clone());
            }
            ClusterChange::Remove(name) | ClusterChange::RemoveLost(name) => {
                next.clusters.remove(name);
                next.joining.remove(name);
                next.lost.remove(name);
            }
        }
        next.check().map_err(ClustersUnchanged::Refused)?;
        Ok(next)
    }
}

/// The machine's refusal, with names in place of numbers.
fn explained(list: &Clusters, name: &str, refused: &ChangeRefused) -> String {
    let named = |id: u16| list.clusters.keys().find(|known| id_of(known).0 == id).map_or(name, String::as_str);
    match refused {
        ChangeRefused::Present(id) => format!("cluster {:?} is already in the list", named(*id)),
        ChangeRefused::Absent(id) => {
            format!("cluster {:?} is not in the list; see `greenroom clusters list`", named(*id))
        }
        ChangeRefused::NotDraining(id) => {
            format!("cluster {0:?} is not draining; first `greenroom clusters drain {0}`", named(*id))
        }
        ChangeRefused::Unacknowledged { cluster, epoch } => format!(
            "cluster {0:?} does not work by list {epoch} yet; see `greenroom clusters status`, and try again when it does; if it is gone \
             for good, first `greenroom clusters remove --lost {0}`",
            named(*cluster)
        ),
        ChangeRefused::Draining(id) => format!("cluster {:?} is draining already", named(*id)),
        ChangeRefused::Lost(id) => format!(
            "cluster {:?} is being taken out as lost: nodes drop it by themselves when what it may own has run out (`geo.lost_after`)",
            named(*id)
        ),
        ChangeRefused::NotAdmitted(id) => format!(
            "cluster {0:?} was added and does not take part yet; `greenroom clusters remove {0}` takes it out",
            named(*id)
        ),
        ChangeRefused::NotEmpty(id) => format!(
            "cluster {0:?} still has instances, or its journal holds reliable actors; wait until `greenroom clusters status` shows it \
             empty; reliable actors stay in their cluster's journal, so if they are to be left there, stop the nodes of {0:?}, and \
             then `greenroom clusters remove --lost {0}`",
            named(*id)
        ),
        other => other.to_string(),
    }
}
