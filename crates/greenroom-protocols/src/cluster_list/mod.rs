//! Agreement of several clusters on the list of clusters, and the fence of a cluster that may be taken for lost.
//! Pure: no clock, no I/O, no randomness.
//!
//! Each list but the first follows another one ([`ListBefore`]). Its *members* are the clusters that take part or are about to leave.
//!
//! - **Acknowledgement.** A cluster that hears of a list writes it to its own membership table and only then works by it. It
//!   acknowledges the list once all of its nodes work by it; from then on it answers no cluster that the list has removed. Of two lists that
//!   follow the same one, it takes the first it hears and no other, unless the other is known to be in force ([`ClusterList::replaces`]).
//! - **In force.** A list is in force when a majority of the members of the list before it has acknowledged it. A list that operators gave
//!   in files is in force. No step is taken from a list that is not in force. Two majorities of one list have a cluster in common, so at most
//!   one list that follows it is ever in force.
//!   A step is taken only while a majority answers that could bring the new list into force.
//! - **Rivals.** The numbers of lists only rise where a cluster works by them. A cluster that took a rival which never comes into force
//!   therefore needs a list with a higher number than the rival's. Nodes that work by a list in force and hear of such a rival
//!   put the list under a higher number ([`ListStep::Renumber`]).
//! - **Confirmation.** A cluster is confirmed by answers, to questions that it asked in the last half of `lost_after`, of a majority of the
//!   members of its own newest list, itself counted. While that list is not known to be in force, the answers must also be a majority of
//!   the members of the list before it: otherwise a minority could confirm itself with a list that removes all others. An answer of a
//!   cluster that works by a later list does not count; the asker adopts that list first. Where the list is in a store, a read of it that
//!   names the cluster breaks a tie of exactly half, and nothing else.
//! - **Fence.** A cluster that is not confirmed is fenced: it gives up what must be single. A removed cluster's ownerships are free
//!   `lost_after` after the list that removes it is in force. By then it is fenced: each majority that could confirm it has a
//!   cluster that acknowledged that list.
//! - **Vouching.** An operator who vouches that no node of some clusters runs takes their votes away. They leave the list at once.

mod keeper;
mod step;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

pub use keeper::{Action, Answer, Config, Event, ListKeeper, ListVotes};
pub use step::{ListStep, StepRefused};

use crate::gsi::{ClusterId, ConfigEpoch, Configuration, Standing};

/// A list of clusters, and the list that it follows.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ClusterList {
    /// Its number and the clusters.
    pub configuration: Configuration,
    /// The list that it follows; `None` for a list that operators gave in files.
    pub before: Option<ListBefore>,
}

/// The list that another one follows, as far as its majority is needed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ListBefore {
    /// Its number.
    pub number: ConfigEpoch,
    /// Its members, without those of which an operator has vouched that none of their nodes runs.
    pub voters: BTreeSet<ClusterId>,
}

impl ClusterList {
    /// A list that operators gave in files: it is in force.
    pub fn given(configuration: Configuration) -> Self {
        Self { configuration, before: None }
    }

    /// Its number.
    pub fn number(&self) -> ConfigEpoch {
        self.configuration.epoch
    }

    /// The number of the list before it; 0 if there is none.
    pub fn base(&self) -> ConfigEpoch {
        self.before.as_ref().map_or(ConfigEpoch(0), |before| before.number)
    }

    /// The clusters that take part or are about to leave.
    pub fn members(&self) -> impl Iterator<Item = ClusterId> + '_ {
        let all = self.configuration.clusters.iter();
        all.filter(|(_, standing)| matches!(standing, Standing::Full | Standing::Draining)).map(|(cluster, _)| *cluster)
    }

    /// True if `cluster` takes part or is about to leave.
    pub fn is_member(&self, cluster: ClusterId) -> bool {
        matches!(self.configuration.standing(cluster), Some(Standing::Full | Standing::Draining))
    }

    /// True if a cluster that works by `known` adopts this list, which is in force if `in_force` says so.
    ///
    /// A list that follows a later one than `known` does proves that the later one is in force. `known` is then before it, or never in
    /// force. Two lists that follow the same one are rivals, and a cluster acknowledges only one of them.
    pub fn replaces(&self, known: &Self, in_force: bool) -> bool {
        self.number() > known.number()
            && (self.before.is_none() || self.base() > known.base() || self.base() == known.base() && in_force)
    }
}

/// The safety rules, each of which a model takes out to show that it matters.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Checks {
    /// A list is in force only by a majority.
    pub in_force_by_majority: bool,
    /// A cluster acknowledges one of several lists that follow the same one.
    pub one_vote: bool,
    /// A cluster is confirmed by a majority, not by any answer.
    pub confirmed_by_majority: bool,
    /// A list that is not in force does not confirm alone.
    pub list_before_confirms: bool,
    /// An answer by a later list does not count.
    pub answers_of_later_lists: bool,
}

impl Default for Checks {
    fn default() -> Self {
        Self {
            in_force_by_majority: true,
            one_vote: true,
            confirmed_by_majority: true,
            list_before_confirms: true,
            answers_of_later_lists: true,
        }
    }
}
