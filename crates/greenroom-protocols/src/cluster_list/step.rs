//! Steps from one list to the next.

use std::collections::{BTreeMap, BTreeSet};

use super::keeper::{ListKeeper, ListVotes};
use super::{ClusterList, ListBefore};
use crate::gsi::{Acknowledged, Change, ChangeRefused, ClusterId, ConfigEpoch, Standing};
use crate::time::Timestamp;

/// One step of a change.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ListStep {
    /// A step for which all members must work by the list before.
    Change(Change),
    /// These clusters are removed as lost: they do not answer. Those that do not take part yet leave the list at once.
    Lose(BTreeSet<ClusterId>),
    /// These clusters leave the list at once: an operator vouches that none of their nodes runs.
    Vouch(BTreeSet<ClusterId>),
    /// Removed clusters leave the list, as their ownerships have run out.
    DropLost,
}

/// Why a step is not taken. Nothing has changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StepRefused {
    /// The step before is not complete; retry when it is, or vouch for clusters that will never acknowledge it.
    #[error("list {number} is not in force: {} of {} clusters have acknowledged it", votes.given.len(), votes.voters.len())]
    NotInForce {
        /// The list.
        number: u64,
        /// Its acknowledgements.
        votes: ListVotes,
    },
    /// The new list would not come into force, as too few clusters answer; retry when they do, or vouch for those that are gone.
    #[error("{} of {} clusters answer, and a majority of them must acknowledge the new list", .0.given.len(), .0.voters.len())]
    TooFew(ListVotes),
    /// Nothing to remove: no cluster is lost, or its time has not run out.
    #[error("no removed cluster's time has run out")]
    NotRunOut,
    /// The step does not apply to the list.
    #[error(transparent)]
    Change(#[from] ChangeRefused),
}

impl ListKeeper {
    /// The list after `step`, with the number `number`, given what clusters have acknowledged and which of them do not answer.
    ///
    /// # Errors
    /// Why the step is not taken.
    pub fn step(
        &self,
        step: &ListStep,
        number: ConfigEpoch,
        acknowledged: &BTreeMap<ClusterId, Acknowledged>,
        silent: &BTreeSet<ClusterId>,
    ) -> Result<ClusterList, StepRefused> {
        let list = self.list();
        let vouched = match step {
            ListStep::Vouch(clusters) => clusters.clone(),
            _ => BTreeSet::new(),
        };
        if !self.is_in_force() {
            let mut votes = self.votes();
            votes.voters.retain(|cluster| !vouched.contains(cluster));
            votes.given.retain(|cluster| !vouched.contains(cluster));
            if !votes.are_majority(false) {
                return Err(StepRefused::NotInForce { number: list.number().0, votes });
            }
        }
        let mut next = list.configuration.clone();
        match step {
            ListStep::Change(change) => next = next.change(*change, acknowledged)?,
            ListStep::Lose(clusters) => {
                for cluster in clusters {
                    match next.standing(*cluster) {
                        Some(Standing::Lost) => {}
                        Some(_) => next = next.change(Change::Lose(*cluster), acknowledged)?,
                        None => return Err(ChangeRefused::Absent(cluster.0).into()),
                    }
                }
                if next == list.configuration {
                    let lost = clusters.first().map_or(0, |cluster| cluster.0);
                    return Err(ChangeRefused::Lost(lost).into());
                }
                let voters: BTreeSet<ClusterId> = list.members().collect();
                let given = voters.difference(silent).filter(|cluster| !clusters.contains(cluster)).copied().collect();
                let answering = ListVotes { voters, given };
                if !answering.are_majority(false) && self.config.checks.in_force_by_majority {
                    return Err(StepRefused::TooFew(answering));
                }
            }
            ListStep::Vouch(clusters) => {
                for cluster in clusters {
                    if next.clusters.remove(cluster).is_none() {
                        return Err(ChangeRefused::Absent(cluster.0).into());
                    }
                }
            }
            ListStep::DropLost => {
                next.clusters.retain(|_, standing| *standing != Standing::Lost);
                if next.clusters == list.configuration.clusters {
                    return Err(StepRefused::NotRunOut);
                }
            }
        }
        next.epoch = number;
        let voters = list.members().filter(|cluster| !vouched.contains(cluster)).collect();
        Ok(ClusterList { configuration: next, before: Some(ListBefore { number: list.number(), voters }) })
    }

    /// The step that frees what removed clusters owned, if their time has run out.
    pub fn due_step(&self, now: Timestamp, longest: std::time::Duration) -> Option<ListStep> {
        let lost = self.list().configuration.clusters.values().any(|standing| *standing == Standing::Lost);
        (lost && self.has_run_out(now, longest)).then_some(ListStep::DropLost)
    }
}
