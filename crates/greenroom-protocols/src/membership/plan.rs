//! Which table, if any, a node would write next, given the one that it has just seen.

use std::collections::{BTreeMap, BTreeSet};

use super::Config;
use super::sightings::Sightings;
use super::table::{Row, Suspicion, Table};
use crate::node::{End, KindInfo, Member, NodeId, Status};
use crate::time::Timestamp;

/// What a node knows when it plans a write.
pub(super) struct Planner<'a> {
    pub(super) now: Timestamp,
    pub(super) config: &'a Config,
    pub(super) sightings: &'a Sightings,
    /// When each node was last suspected by this one.
    pub(super) suspected: &'a BTreeMap<NodeId, Timestamp>,
}

/// A node in the table that keeps a newcomer from joining, as it has the same name.
pub(super) enum Namesake {
    /// It renews its lease.
    Lives(NodeId),
    /// Whether it does is not known yet; it does not if it has not by then.
    MayLive { until: Timestamp },
}

impl Planner<'_> {
    /// The table with `member` joining, what had its name dead, and the id that it gets; or who keeps its name, or may.
    pub(super) fn allocate(&self, table: &Table, member: &Member) -> Result<(Table, NodeId), Namesake> {
        let old: Vec<NodeId> = table.called(&member.name).collect();
        let waits = self.config.checks.name_wait && self.config.lease.is_some();
        if let Some(node) = old.iter().copied().find(|node| waits && !self.lease_ran_out(table, *node, 1)) {
            let until = self.runs_out(table, node).unwrap_or(Timestamp::NEVER);
            return Err(if self.sightings.lives(node) { Namesake::Lives(node) } else { Namesake::MayLive { until } });
        }
        let mut next = table.clone();
        next.version += 1;
        let node = NodeId(next.next_node.max(1));
        next.next_node = node.0 + 1;
        for id in old {
            next.kill(id, End::StartedAnew);
        }
        let lease = self.config.lease.unwrap_or_default().length;
        next.rows.insert(node, Row::joining(member.clone(), lease));
        Ok((next, node))
    }

    /// The table after `me` has left.
    pub(super) fn leave(&self, table: &Table, me: NodeId) -> Table {
        let mut next = table.clone();
        next.version += 1;
        next.kill(me, End::Left);
        if let Some(row) = next.rows.get_mut(&me) {
            row.left = true;
        }
        next
    }

    /// What the joining node `me` would write: the deaths of those whose leases have run out and that have not `reached` it,
    /// and itself active once all others have.
    pub(super) fn join(&self, table: &Table, me: NodeId, reached: &BTreeSet<NodeId>, renewed: bool) -> Option<Table> {
        let mut next = table.clone();
        next.version += 1;
        for node in table.active() {
            let gone = self.lease_ran_out(table, node, 1);
            // Who is dead does not answer; a node that has reached us is left to the members to judge.
            if gone && !reached.contains(&node) {
                next.kill(node, End::LeaseRanOut);
            }
        }
        let admitted = !self.config.checks.join_probe || next.active().all(|node| reached.contains(&node));
        if admitted && (renewed || self.config.lease.is_none()) {
            next.rows.get_mut(&me)?.member.status = Status::Active;
        }
        (next.rows != table.rows).then_some(next)
    }

    /// What the active node `me` would write: votes, deaths, the removal of rows long dead, later versions of states that all
    /// nodes read, the kinds that it hosts now, and that it is about to leave if it is `draining`.
    pub(super) fn tend(&self, table: &Table, me: NodeId, kinds: &[KindInfo], draining: bool) -> Option<Table> {
        let mut next = table.clone();
        next.version += 1;
        if let Some(row) = next.rows.get_mut(&me) {
            row.member.draining |= draining;
            if row.member.kinds != kinds {
                row.member.kinds = kinds.to_vec();
            }
        }
        let ids: Vec<NodeId> = table.rows.keys().copied().filter(|id| *id != me).collect();
        for node in ids {
            match next.rows[&node].member.status {
                Status::Active => self.judge(&mut next, me, node),
                Status::Joining => {
                    if self.lease_ran_out(table, node, JOINER_LEASES) {
                        next.kill(node, End::NeverJoined);
                    }
                }
                Status::Dead => {
                    let freed = self.sightings.freed().get(&node).copied().unwrap_or(Timestamp::NEVER);
                    if freed + self.config.dead_kept <= self.now {
                        next.rows.remove(&node);
                    }
                }
            }
        }
        let hosts = next.rows.values().filter(|row| row.member.status != Status::Dead && !row.member.draining);
        next.states.raise(hosts.flat_map(|row| &row.member.kinds));
        (next.rows != table.rows || next.states != table.states).then_some(next)
    }

    /// Declares the active node dead, or adds our vote, or leaves it.
    fn judge(&self, next: &mut Table, me: NodeId, node: NodeId) {
        let suspected = self.suspects(node);
        let votes = self.votes(next, me, node) + usize::from(suspected);
        let active = next.active().count();
        let decides = active >= VOTERS_MIN || !self.config.checks.tie_break;
        let ran_out = self.lease_ran_out(next, node, 1);
        let voted_out = decides && votes >= self.config.votes.min(active - 1);
        if voted_out || (suspected && ran_out) {
            next.kill(node, if ran_out { End::LeaseRanOut } else { End::Silent });
        } else if suspected && active > 1 {
            self.vote(next, me, node);
        }
    }

    /// Fresh suspicions of `node` by active nodes other than `me`.
    fn votes(&self, table: &Table, me: NodeId, node: NodeId) -> usize {
        table.rows[&node]
            .suspicions
            .iter()
            .filter(|s| s.by != me && s.by != node && table.status(s.by) == Some(Status::Active))
            .filter(|s| self.sightings.is_fresh(self.now, node, s.by, s.at_version, self.config))
            .count()
    }

    /// Writes our suspicion of `node` down, unless a fresh one stands there.
    fn vote(&self, next: &mut Table, me: NodeId, node: NodeId) {
        let at_version = next.version;
        let Some(row) = next.rows.get_mut(&node) else { return };
        let fresh = row
            .suspicions
            .iter()
            .any(|s| s.by == me && self.sightings.is_fresh(self.now, node, me, s.at_version, self.config));
        if !fresh {
            row.suspicions.retain(|s| s.by != me);
            row.suspicions.push(Suspicion { by: me, at_version });
        }
    }

    /// Whether the lease of `node` has surely run out, `times` over, unless it is renewed by now.
    fn lease_ran_out(&self, table: &Table, node: NodeId, times: u32) -> bool {
        let (Some(lease), Some(row)) = (self.config.lease, table.rows.get(&node)) else { return false };
        self.sightings.lease_ran_out(self.now, node, lease.judged_over(row.lease) * times)
    }

    /// When that will be, if it is not renewed any more.
    fn runs_out(&self, table: &Table, node: NodeId) -> Option<Timestamp> {
        self.sightings.runs_out(node, self.config.lease?.judged_over(table.rows.get(&node)?.lease))
    }

    fn suspects(&self, node: NodeId) -> bool {
        self.suspected.get(&node).is_some_and(|at| self.now < *at + self.config.suspicion_expiry)
    }
}

/// Fewer active nodes than this evict nobody by suspicion alone.
const VOTERS_MIN: usize = 3;

/// A joiner that has not renewed for this many lease lengths has given up.
const JOINER_LEASES: u32 = 3;
