//! One node's knowledge of the list: which list it works by, whether that is in force, and whether its cluster is confirmed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Checks, ClusterList};
use crate::gsi::{ClusterId, ConfigEpoch, Standing};
use crate::time::Timestamp;

/// Something that a node learns.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// Another node works by this list.
    Heard {
        /// The list.
        list: ClusterList,
        /// True if that node knows it to be in force.
        in_force: bool,
    },
    /// The membership table of this cluster holds this list: the node works by it.
    Accepted(ClusterList),
    /// Another node of this cluster knows of a rival list with this number, which never comes into force.
    RivalHeard(ConfigEpoch),
    /// All nodes of a cluster work by the list of this number.
    Acknowledged(ClusterId, ConfigEpoch),
    /// A cluster answered a question.
    Answered(Answer),
    /// A read of the list in its store, begun at `asked`, found the list of this number.
    StoreRead {
        /// When the read began.
        asked: Timestamp,
        /// The number of the list there.
        number: ConfigEpoch,
    },
    /// Time has passed.
    Tick,
}

/// A cluster's answer to a question.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Answer {
    /// The cluster that answered.
    pub cluster: ClusterId,
    /// When the question was asked, by this node's clock.
    pub asked: Timestamp,
    /// The list that the answering node works by.
    pub number: ConfigEpoch,
    /// The list before that; 0 if there is none.
    pub base: ConfigEpoch,
}

/// Something that the node must do.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// Write this list to the membership table, unless that holds one which it does not replace, and say [`Event::Accepted`] with the
    /// list that is there then.
    Accept(ClusterList),
    /// The list that the node works by is in force.
    InForce(ConfigEpoch),
    /// The cluster is not confirmed and gives up what must be single, or it is confirmed again.
    Fence(bool),
}

/// How a node counts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// Time after which ownerships of a removed cluster are free; zero if no cluster is ever fenced.
    pub lost_after: Duration,
    /// The safety rules in force.
    #[doc(hidden)]
    pub checks: Checks,
}

/// Votes for something that needs a majority.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListVotes {
    /// The clusters that may vote.
    pub voters: BTreeSet<ClusterId>,
    /// Those that have.
    pub given: BTreeSet<ClusterId>,
}

impl ListVotes {
    /// Votes that make a majority.
    pub fn needed(&self) -> usize {
        self.voters.len() / 2 + 1
    }

    /// True if a majority has voted; with `tie_broken`, half of the voters are enough.
    pub fn are_majority(&self, tie_broken: bool) -> bool {
        self.given.len() >= self.needed() || tie_broken && 2 * self.given.len() == self.voters.len()
    }

    /// The voters that have not voted.
    pub fn missing(&self) -> impl Iterator<Item = ClusterId> + '_ {
        self.voters.difference(&self.given).copied()
    }
}

/// One node's knowledge of the list of clusters.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ListKeeper {
    me: ClusterId,
    pub(super) config: Config,
    list: ClusterList,
    /// Since when the node knows that the list is in force.
    in_force: Option<Timestamp>,
    /// The highest number of a list that the node has heard of and not adopted.
    rival: ConfigEpoch,
    /// Clusters that have acknowledged the list.
    acknowledged: BTreeSet<ClusterId>,
    /// When the last question was asked that a cluster has answered.
    answers: BTreeMap<ClusterId, Timestamp>,
    /// When the last read of the store began that found this list there.
    store_read: Option<Timestamp>,
    /// A node counts from its start: it has nothing yet that it could give up.
    began: Timestamp,
    fenced: bool,
}

impl ListKeeper {
    /// The knowledge of a node of the cluster `me` that starts with `list`, which is in force if it is given or `in_force` says so.
    pub fn new(me: ClusterId, list: ClusterList, in_force: bool, config: Config, now: Timestamp) -> Self {
        let in_force = (in_force || list.before.is_none()).then_some(now);
        Self {
            me,
            config,
            list,
            in_force,
            rival: ConfigEpoch(0),
            acknowledged: BTreeSet::new(),
            answers: BTreeMap::new(),
            store_read: None,
            began: now,
            fenced: false,
        }
    }

    /// Takes in `event` at `now`, and appends the actions that it requires to `out`.
    pub fn handle(&mut self, now: Timestamp, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Heard { list, in_force } if list == self.list => {
                if in_force {
                    self.comes_into_force(now, out);
                }
            }
            Event::Heard { list, in_force } => {
                if self.adopts(&list, in_force) {
                    out.push(Action::Accept(list));
                } else {
                    self.rival = self.rival.max(list.number());
                }
            }
            Event::RivalHeard(number) => self.rival = self.rival.max(number),
            Event::Accepted(list) => self.accept(now, list, out),
            Event::Acknowledged(cluster, number) => {
                if number == self.list.number() {
                    self.acknowledged.insert(cluster);
                }
                if self.votes().are_majority(false) {
                    self.comes_into_force(now, out);
                }
            }
            Event::Answered(answer) => {
                if self.counts(&answer) {
                    let known = self.answers.entry(answer.cluster).or_default();
                    *known = answer.asked.max(*known);
                }
            }
            Event::StoreRead { asked, number } => {
                if number == self.list.number() {
                    self.store_read = self.store_read.max(Some(asked));
                }
            }
            Event::Tick => {}
        }
        let fenced = !self.config.lost_after.is_zero() && !self.is_confirmed(now);
        if std::mem::replace(&mut self.fenced, fenced) != fenced {
            out.push(Action::Fence(fenced));
        }
    }

    /// The list that the node works by.
    pub fn list(&self) -> &ClusterList {
        &self.list
    }

    /// True if the node works by a list that is in force.
    pub fn is_in_force(&self) -> bool {
        self.in_force.is_some()
    }

    /// True while the cluster is not confirmed, as of the last event.
    pub fn is_fenced(&self) -> bool {
        self.fenced
    }

    /// The number of a rival list that never comes into force and is higher than that of the list that the node works by, if there is one.
    /// Clusters that work by the rival adopt only a list whose number is higher still.
    pub fn outnumbered_by(&self) -> Option<ConfigEpoch> {
        (self.is_in_force() && self.rival > self.list.number()).then_some(self.rival)
    }

    /// The highest number of a list that the node has heard of.
    pub fn highest_number(&self) -> ConfigEpoch {
        self.rival.max(self.list.number())
    }

    /// True if ownerships of removed clusters are free: the list has been in force for `lost_after`, or for `longest` if that is longer, and
    /// a fiftieth more for clocks that run apart.
    pub fn has_run_out(&self, now: Timestamp, longest: Duration) -> bool {
        let wait = self.config.lost_after.max(longest);
        self.in_force.is_some_and(|since| now.since(since) >= wait + wait / 50)
    }

    /// The acknowledgements that the list has, of those that bring it into force.
    pub fn votes(&self) -> ListVotes {
        let voters = self.list.before.as_ref().map(|before| before.voters.clone()).unwrap_or_default();
        let given = voters.intersection(&self.acknowledged).copied().collect();
        ListVotes { voters, given }
    }

    /// The answers that confirm the cluster, of the members of its newest list.
    pub fn confirmations(&self, now: Timestamp) -> ListVotes {
        let voters: BTreeSet<ClusterId> = self.list.members().collect();
        let given = voters.iter().copied().filter(|cluster| self.answered(*cluster, now)).collect();
        ListVotes { voters, given }
    }

    fn is_confirmed(&self, now: Timestamp) -> bool {
        let half = self.config.lost_after / 2;
        match self.list.configuration.standing(self.me) {
            Some(Standing::Full | Standing::Draining) => {}
            // It owns nothing yet.
            Some(Standing::Joining) => return true,
            Some(Standing::Lost) | None => return false,
        }
        let store = self.store_read.is_some_and(|asked| now.since(asked) < half);
        let of_newest = self.confirmations(now);
        let checks = self.config.checks;
        if now.since(self.began) < half {
            return true;
        }
        if !checks.confirmed_by_majority {
            return of_newest.voters.len() == 1 || of_newest.given.len() > 1;
        }
        let of_before = match &self.list.before {
            Some(before) if self.in_force.is_none() && checks.list_before_confirms => {
                let given = before.voters.intersection(&of_newest.given).copied().collect();
                ListVotes { voters: before.voters.clone(), given }.are_majority(store)
            }
            _ => true,
        };
        of_newest.are_majority(store) && of_before
    }

    fn answered(&self, cluster: ClusterId, now: Timestamp) -> bool {
        let asked = self.answers.get(&cluster);
        cluster == self.me || asked.is_some_and(|asked| now.since(*asked) < self.config.lost_after / 2)
    }

    /// True if an answer confirms this cluster: it is of a member of the list, by the same list or one that is not later than the newest
    /// list in force that this node knows.
    fn counts(&self, answer: &Answer) -> bool {
        let in_force = if self.in_force.is_some() { self.list.number() } else { self.list.base() };
        let later = answer.number != self.list.number() && answer.base >= in_force;
        self.list.is_member(answer.cluster) && (!later || !self.config.checks.answers_of_later_lists)
    }

    fn adopts(&self, list: &ClusterList, in_force: bool) -> bool {
        list.replaces(&self.list, in_force) || !self.config.checks.one_vote && list.number() > self.list.number()
    }

    fn accept(&mut self, now: Timestamp, list: ClusterList, out: &mut Vec<Action>) {
        if list == self.list {
            return;
        }
        self.answers.retain(|cluster, _| list.is_member(*cluster));
        self.acknowledged.clear();
        self.store_read = None;
        self.in_force = None;
        self.list = list;
        if self.list.before.is_none() || !self.config.checks.in_force_by_majority {
            self.comes_into_force(now, out);
        }
    }

    fn comes_into_force(&mut self, now: Timestamp, out: &mut Vec<Action>) {
        if self.in_force.is_none() {
            self.in_force = Some(now);
            out.push(Action::InForce(self.list.number()));
        }
    }
}
