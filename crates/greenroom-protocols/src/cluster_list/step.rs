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
    /// The clusters stay, under a number that is higher than that of a rival list: clusters that work by the rival adopt only such a list.
    Renumber,
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
    /// Nothing to do: no rival list has a higher number.
    #[error("no list of clusters with a higher number is known")]
    NotOutnumbered,
    /// The step does not apply to the list.
    #[error(transparent)]
    Change(#[from] ChangeRefused),
}

impl ListKeeper {
    /// The list after `step`, with the number `number`, given what clusters have acknowledged and which of them do not answer. A cluster
    /// that works by a list with another number does not work by this one: it may be a rival, whatever its number is.
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
            ListStep::Change(change) => {
                let exact = acknowledged.iter().filter(|(_, said)| said.epoch == list.number());
                next = next.change(*change, &exact.map(|(cluster, said)| (*cluster, *said)).collect())?;
            }
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
            ListStep::Renumber if self.outnumbered_by().is_none() => return Err(StepRefused::NotOutnumbered),
            ListStep::Renumber => {}
        }
        let answering = self.answering(step, silent);
        let is_vouched = matches!(step, ListStep::Vouch(_));
        if !is_vouched && !answering.are_majority(false) && self.config.checks.in_force_by_majority {
            return Err(StepRefused::TooFew(answering));
        }
        next.epoch = number;
        let voters = list.members().filter(|cluster| !vouched.contains(cluster)).collect();
        Ok(ClusterList { configuration: next, before: Some(ListBefore { number: list.number(), voters }) })
    }

    /// The members that could acknowledge the list after `step` now: a list that waits binds the votes of those that took it.
    fn answering(&self, step: &ListStep, silent: &BTreeSet<ClusterId>) -> ListVotes {
        let is_lost = |cluster: &ClusterId| matches!(step, ListStep::Lose(lost) if lost.contains(cluster));
        let voters: BTreeSet<ClusterId> = self.list().members().collect();
        let given = voters.difference(silent).filter(|cluster| !is_lost(cluster)).copied().collect();
        ListVotes { voters, given }
    }

    /// The step that nodes take by themselves: it numbers the list above a rival, or frees what removed clusters owned if their time has
    /// run out.
    pub fn due_step(&self, now: Timestamp, longest: std::time::Duration) -> Option<ListStep> {
        if self.outnumbered_by().is_some() {
            return Some(ListStep::Renumber);
        }
        let lost = self.list().configuration.clusters.values().any(|standing| *standing == Standing::Lost);
        (lost && self.has_run_out(now, longest)).then_some(ListStep::DropLost)
    }
}
