//! Changes of the list of clusters, one step at a time (G3 of GSI).

use std::collections::BTreeSet;
use std::sync::Arc;

use greenroom_protocols::cluster_list::{ListStep, ListVotes, StepRefused};
use greenroom_protocols::gsi::{Change, ChangeRefused, ConfigEpoch, Configuration};

use super::clusters::{ListedBefore, id_of};
use super::config::GeoCluster;
use super::listing::Unwritten;
use super::term::OVERTAKEN;
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
    /// Clusters are removed together that will never answer again. The list that removes them is in force once a majority of the members of
    /// the list before it works by it. Nodes drop them by themselves [`GeoConfig::lost_after`](field@crate::GeoConfig::lost_after) later: by then
    /// they have given up what must be single, should they live, and that is activated elsewhere.
    RemoveLost {
        /// The clusters.
        clusters: Vec<String>,
        /// True if the operator vouches that no node of them runs. They have no votes then, and are dropped at once.
        vouch: bool,
    },
    /// Clusters that are lost leave the list. Nodes make this change by themselves, once what they own has run out.
    DropLost,
    /// The list gets a higher number and stays otherwise. Nodes make this change by themselves when a rival list, which too few clusters have
    /// acknowledged, has a higher number: clusters that work by the rival adopt only a list with a number above it.
    Renumber,
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
            let numbered = Configuration { epoch: self.term.keeper().highest_number(), ..list.configuration() };
            let number = numbered.number_after(self.me(), stands_in);
            let next = self.changed(node, &list, wish, number)?;
            return self.accept_own(node, next).await.map_err(ClustersUnchanged::Refused);
        };
        let stored = listing.read().await.map_err(ClustersUnchanged::Refused)?;
        let version = stored.as_ref().map(|(_, version)| version.clone());
        if let Some((list, _)) = stored.filter(|(list, _)| list.epoch > self.clusters().epoch) {
            self.accept_own(node, list).await.map_err(ClustersUnchanged::Refused)?;
        }
        let list = self.clusters();
        let number = ConfigEpoch(self.term.keeper().highest_number().0 + 1);
        let next = self.changed(node, &list, wish, number)?;
        match listing.write(&next, version.as_ref()).await {
            Ok(()) => self.accept_own(node, next).await.map_err(ClustersUnchanged::Refused),
            Err(Unwritten::Overtaken) => Err(ClustersUnchanged::Refused(OVERTAKEN.to_owned())),
            Err(Unwritten::Failed(why)) => Err(ClustersUnchanged::Refused(why)),
        }
    }

    /// Has the clusters take part that were added and work by the list by now, drops those that are lost and own nothing more, and numbers
    /// the list above a rival.
    pub(super) async fn finish_changes(self: &Arc<Self>, node: &Here) {
        let list = self.clusters();
        let due = self.due_step();
        let none_due = due.is_none() && list.joining.is_empty();
        if none_due || self.makes_changes(node).is_err() {
            return;
        }
        let (configuration, acknowledged) = (list.configuration(), self.acknowledged(node));
        let admitted = configuration.admissible(&acknowledged).find_map(|cluster| list.name(cluster));
        let admitted = admitted.map(|name| ClusterChange::Admit(name.to_owned()));
        let next = match due {
            Some(ListStep::Renumber) => Some(ClusterChange::Renumber),
            due => admitted.or_else(|| due.map(|_| ClusterChange::DropLost)),
        };
        if let Some(change) = next
            && let Err(why) = self.change(node, &change).await
        {
            tracing::debug!(?change, %why, "a change of the list of clusters is not finished yet");
        }
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

    /// The list after a change, with the number `number`.
    fn changed(
        &self,
        node: &Here,
        list: &Clusters,
        wish: &ClusterChange,
        number: ConfigEpoch,
    ) -> Result<Clusters, ClustersUnchanged> {
        let (named, step) = match wish {
            ClusterChange::Add(name, _) => (name.as_str(), ListStep::Change(Change::Add(id_of(name)))),
            ClusterChange::Admit(name) => (name.as_str(), ListStep::Change(Change::Admit(id_of(name)))),
            ClusterChange::Drain(name) => (name.as_str(), ListStep::Change(Change::Drain(id_of(name)))),
            ClusterChange::Remove(name) => (name.as_str(), ListStep::Change(Change::Drop(id_of(name)))),
            ClusterChange::RemoveLost { clusters, vouch } => {
                self.check_lost(list, clusters).map_err(ClustersUnchanged::Refused)?;
                let ids = clusters.iter().map(|name| id_of(name)).collect();
                ("", if *vouch { ListStep::Vouch(ids) } else { ListStep::Lose(ids) })
            }
            ClusterChange::DropLost => ("", ListStep::DropLost),
            ClusterChange::Renumber => ("", ListStep::Renumber),
        };
        let changed = self.term.keeper().step(&step, number, &self.acknowledged(node), &self.silent());
        let changed = changed.map_err(|refused| ClustersUnchanged::Refused(not_taken(list, named, &refused)))?;
        let mut next = Clusters { epoch: changed.number().0, vouched: BTreeSet::new(), ..list.clone() };
        if let ClusterChange::Add(name, gateways) = wish {
            next.clusters.insert(name.clone(), GeoCluster::at(gateways));
        }
        if let ClusterChange::RemoveLost { clusters, vouch: true } = wish {
            next.vouched = clusters.iter().cloned().collect();
        }
        next.before = changed.before.as_ref().map(|before| ListedBefore {
            epoch: before.number.0,
            voters: list.names(before.voters.iter().copied()).into_iter().collect(),
        });
        next.stand(&changed.configuration);
        next.check().map_err(ClustersUnchanged::Refused)?;
        Ok(next)
    }

    /// Refuses to remove as lost what answers, or is not listed.
    fn check_lost(&self, list: &Clusters, clusters: &[String]) -> Result<(), String> {
        let silent = self.silent();
        for name in clusters {
            if !list.clusters.contains_key(name) {
                return Err(format!("cluster {name:?} is not in the list; see `greenroom clusters list`"));
            }
            if name == self.name() {
                return Err(format!("cluster {name:?} is this one; ask at a node of another cluster"));
            }
            if !silent.contains(&id_of(name)) && list.is_member(name) {
                return Err(format!(
                    "cluster {name:?} is not lost: it answers; drain it and remove it then, or stop its nodes"
                ));
            }
        }
        Ok(())
    }

    /// Tells which clusters a list waits for that is not in force.
    pub(super) fn waits_for(&self) -> Option<String> {
        let keeper = self.term.keeper();
        let (in_force, number, votes) = (keeper.is_in_force(), keeper.list().number().0, keeper.votes());
        drop(keeper);
        (!in_force).then(|| not_in_force(&self.clusters(), number, &votes))
    }
}

/// The refusal of a step, with names in place of numbers.
fn not_taken(list: &Clusters, name: &str, refused: &StepRefused) -> String {
    match refused {
        StepRefused::Change(refused) => explained(list, name, refused),
        StepRefused::NotInForce { number, votes } => not_in_force(list, *number, votes),
        StepRefused::TooFew(votes) => {
            let (answering, missing) = (list.names(votes.given.iter().copied()), list.names(votes.missing()));
            format!(
                "{} of {} clusters would acknowledge the change ({}), and {} must; wait until more of them answer, or if no node of {} \
                 runs, `greenroom clusters remove --lost --vouch {}`",
                answering.len(),
                votes.voters.len(),
                answering.join(", "),
                votes.needed(),
                missing.join(", "),
                missing.join(" ")
            )
        }
        other => other.to_string(),
    }
}

fn not_in_force(list: &Clusters, number: u64, votes: &ListVotes) -> String {
    let (given, missing) = (list.names(votes.given.iter().copied()), list.names(votes.missing()));
    format!(
        "list {number} is not in force: {} of {} clusters of the list before it have acknowledged it ({}), and {} must; wait for {}, or if \
         none of their nodes runs, `greenroom clusters remove --lost --vouch {}`",
        given.len(),
        votes.voters.len(),
        given.join(", "),
        votes.needed(),
        missing.join(" or "),
        missing.join(" ")
    )
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
