//! Whether a state that was read while the other clusters were asked is as good as one that is read after their answers.
//!
//! It is if nothing can have written it since the reading began. Whoever writes a single actor's state is an instance, so it
//! is enough that there was none anywhere since then:
//!
//! - in this cluster, as the reading begins when the actor is absent and its machine has no instance, and only the first
//!   activation under the ownership that the round won may use it;
//! - in each other cluster, as its answer says that it passes *and* that it was [quiet](Stillness): no instance of the actor
//!   has been there for [`QUIET`]. The reading is used only if it began less than [`USABLE`] ago, which is shorter, so the
//!   last instance had ended before. From its answer on no cluster makes another one, unless it takes the ownership.
//!
//! No clocks are compared: each cluster measures a time of its own, and the two bounds leave room for their rates. A doubtful
//! instance reads anew. What an ended instance's store has not decided may come later in either case: saves expect the
//! version that was read.

use std::collections::BTreeSet;
use std::time::Duration;

use greenroom_protocols::gsi::{ClusterId, Round};
use greenroom_protocols::node::{NodeId, Status, View};
use greenroom_world::Timestamp;

/// Since when a range knows all instances of this cluster.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stillness {
    /// When all hosts had reported, once they have.
    complete: Option<Timestamp>,
    /// When something changed that may have ended instances unseen.
    changed: Timestamp,
    view: u64,
    /// When the leases of all nodes that are dead are over.
    leases_over: Timestamp,
}

impl Stillness {
    /// The range has another owner, or this node anew.
    pub(super) fn begin(&mut self) {
        self.complete = None;
    }

    /// All hosts have reported.
    pub(super) fn complete(&mut self, now: Timestamp) {
        self.complete = Some(now);
    }

    /// An instance has ended that had no machine.
    pub(super) fn ended(&mut self, now: Timestamp) {
        self.changed = now;
    }

    /// Takes in a view: a node that is gone takes its instances along.
    pub(super) fn viewed(&mut self, now: Timestamp, view: &View) {
        if self.view != view.version {
            (self.view, self.changed) = (view.version, now);
        }
        let dead = view.members.iter().filter(|(_, member)| member.status == Status::Dead);
        self.leases_over = dead.filter_map(|(node, _)| view.lease_over(*node)).max().unwrap_or_default();
    }

    /// Whether an actor that is absent, and whose last instance with a machine ended at `left`, has had none for long.
    pub(super) fn is_quiet(&self, now: Timestamp, left: Timestamp) -> bool {
        let since = self.complete.map(|complete| complete.max(self.changed).max(self.leases_over).max(left));
        since.is_some_and(|since| since <= now && now.since(since) >= QUIET)
    }
}

/// A state that is read while a round asks.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    /// The node that reads it.
    pub(super) host: NodeId,
    /// What it is read under there.
    pub(super) token: u64,
    round: Round,
    began: Timestamp,
    asked: BTreeSet<ClusterId>,
    quiet: BTreeSet<ClusterId>,
    won: bool,
}

impl Reading {
    pub(super) fn begin(now: Timestamp, round: Round, host: NodeId, token: u64) -> Self {
        let (asked, quiet) = (BTreeSet::new(), BTreeSet::new());
        Self { host, token, round, began: now, asked, quiet, won: false }
    }

    /// Whether it began with this round.
    pub(super) fn is_of(&self, round: Round) -> bool {
        self.round == round
    }

    /// The round asks this cluster.
    pub(super) fn asked(&mut self, cluster: ClusterId) {
        self.asked.insert(cluster);
    }

    /// A cluster has passed, and was quiet.
    pub(super) fn passed(&mut self, cluster: ClusterId, round: Round) {
        if self.round == round {
            self.quiet.insert(cluster);
        }
    }

    /// Takes in that this round was won; whether its reading may be used.
    pub(super) fn won(&mut self, round: Round) -> bool {
        self.won = self.round == round && self.asked.is_subset(&self.quiet);
        self.won
    }

    /// Whether the next activation may use it.
    pub(super) fn is_usable(&self, now: Timestamp) -> bool {
        self.won && now.since(self.began) < USABLE
    }
}

/// Time without an instance after which a cluster says so.
const QUIET: Duration = Duration::from_secs(5);
/// Age up to which a reading may be used: less than [`QUIET`] by what clocks of different rates may make of it.
const USABLE: Duration = Duration::from_secs(4);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn a_range_that_does_not_know_all_instances_is_never_quiet() {
        let mut still = Stillness::default();
        assert!(!still.is_quiet(at(1000), at(0)));
        still.complete(at(1000));
        assert!(!still.is_quiet(at(1004), at(0)));
        assert!(still.is_quiet(at(1005), at(0)));
        still.begin();
        assert!(!still.is_quiet(at(2000), at(0)), "another tenure knows nothing of what was before it");
    }

    #[test]
    fn an_instance_that_ended_of_late_is_not_quiet() {
        let mut still = Stillness::default();
        still.complete(at(10));
        assert!(!still.is_quiet(at(100), at(96)));
        assert!(still.is_quiet(at(101), at(96)));
        still.ended(at(200));
        assert!(!still.is_quiet(at(204), at(96)));
    }

    #[test]
    fn the_dead_are_quiet_only_long_after_their_leases() {
        let mut still = Stillness::default();
        still.complete(at(10));
        still.leases_over = at(50);
        assert!(!still.is_quiet(at(49), at(0)) && !still.is_quiet(at(54), at(0)));
        assert!(still.is_quiet(at(55), at(0)));
        still.leases_over = Timestamp::NEVER;
        assert!(!still.is_quiet(at(1000), at(0)));
    }

    #[test]
    fn a_reading_is_used_only_if_all_were_quiet_and_it_is_young() {
        let (round, eu, us) = (Round(7), ClusterId(1), ClusterId(2));
        let mut reading = Reading::begin(at(10), round, NodeId(1), 3);
        reading.asked(eu);
        reading.asked(us);
        reading.passed(eu, round);
        assert!(!reading.won(round) && !reading.is_usable(at(11)), "one has not said so");
        reading.passed(us, Round(6));
        assert!(!reading.won(round), "it said so of an earlier round");
        reading.passed(us, round);
        assert!(!reading.won(Round(8)), "another round was won");
        assert!(reading.won(round) && reading.is_usable(at(13)));
        assert!(!reading.is_usable(at(14)), "it is too old");
    }
}
