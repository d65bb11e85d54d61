//! What one reader saw in the store and when, by its own clock: the only way leases and suspicions are aged.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Config;
use super::table::{Etag, LeaseRecord, Row, Table};
use crate::node::{NodeId, Status};
use crate::time::Timestamp;

/// What this reader has seen of leases, suspicions and deaths.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Sightings {
    leases: BTreeMap<NodeId, Sighting>,
    /// For each suspicion (of, by, at version): a time before it was written, unknown if it was there at first sight.
    suspicions: BTreeMap<(NodeId, NodeId, u64), Option<Timestamp>>,
    /// When each dead node's lease is surely over.
    freed: BTreeMap<NodeId, Timestamp>,
    /// When the last look at the table began.
    looked: Option<Timestamp>,
}

/// What this reader has seen of one lease.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Sighting {
    /// Its last counter; `None` while there is no record.
    counter: Option<u64>,
    /// When that was first seen.
    since: Timestamp,
    /// How often it was seen renewed, up to [`RENEWALS_OF_THE_LIVING`].
    renewals: u8,
}

impl Sightings {
    /// Takes in `table`, asked for at `started`, and `leases`, which were read after it if at all.
    pub(super) fn observe(
        &mut self,
        now: Timestamp,
        started: Timestamp,
        table: &Table,
        leases: Option<&BTreeMap<NodeId, (LeaseRecord, Etag)>>,
        config: &Config,
    ) {
        self.observe_suspicions(table);
        self.leases.retain(|node, _| table.rows.contains_key(node));
        self.freed.retain(|node, _| table.rows.contains_key(node));
        if let Some(leases) = leases {
            for node in table.rows.keys() {
                let counter = leases.get(node).map(|(record, _)| record.counter);
                let seen = self.leases.entry(*node).or_insert(Sighting { counter, since: now, renewals: 0 });
                if seen.counter != counter {
                    let renewals = (seen.renewals + 1).min(RENEWALS_OF_THE_LIVING);
                    *seen = Sighting { counter, since: now, renewals };
                }
            }
        }
        for (node, row) in &table.rows {
            if row.member.status == Status::Dead {
                let over = self.death(now, *node, row, leases.is_some(), config);
                let freed = self.freed.entry(*node).or_insert(over);
                *freed = over.min(*freed);
            }
        }
        self.looked = Some(started);
    }

    /// When the lease of `node`, which the table just seen shows dead, is surely over.
    ///
    /// A renewal that comes after the death is never granted, so the last one that counts began before now, and before
    /// its counter was first seen if the leases, read after the table, show it unchanged.
    fn death(&self, now: Timestamp, node: NodeId, row: &Row, leases_read: bool, config: &Config) -> Timestamp {
        let Some(lease) = config.lease.filter(|_| !row.left && config.checks.lease_wait) else {
            return now;
        };
        let renewed = match self.leases.get(&node) {
            Some(seen) if leases_read => seen.since,
            _ => now,
        };
        renewed + lease.judged_over(row.lease)
    }

    fn observe_suspicions(&mut self, table: &Table) {
        let looked = self.looked;
        let mut seen = BTreeMap::new();
        for (of, row) in &table.rows {
            for suspicion in &row.suspicions {
                let name = (*of, suspicion.by, suspicion.at_version);
                seen.insert(name, self.suspicions.get(&name).copied().unwrap_or(looked));
            }
        }
        self.suspicions = seen;
    }

    /// Whether the suspicion of `of` by `by` is known to be younger than the expiry.
    pub(super) fn is_fresh(&self, now: Timestamp, of: NodeId, by: NodeId, at_version: u64, config: &Config) -> bool {
        if !config.checks.suspicion_expiry {
            return true;
        }
        let written_after = self.suspicions.get(&(of, by, at_version)).copied().flatten();
        written_after.is_some_and(|time| now < time + config.suspicion_expiry)
    }

    /// Whether the lease of `node` has surely run out, unless it is renewed by now, if that takes so `long`.
    pub(super) fn lease_ran_out(&self, now: Timestamp, node: NodeId, long: Duration) -> bool {
        self.runs_out(node, long).is_some_and(|at| at <= now)
    }

    /// When that lease has run out, if it is not renewed any more; `None` for one that was never looked for.
    pub(super) fn runs_out(&self, node: NodeId, long: Duration) -> Option<Timestamp> {
        self.leases.get(&node).map(|seen| seen.since + long)
    }

    /// Whether `node` was alive after this reader first looked.
    pub(super) fn lives(&self, node: NodeId) -> bool {
        self.leases.get(&node).is_some_and(|seen| seen.renewals >= RENEWALS_OF_THE_LIVING)
    }

    pub(super) fn freed(&self) -> &BTreeMap<NodeId, Timestamp> {
        &self.freed
    }
}

/// The last renewal of a node that has died may land after its death, as one change of its lease; no second one does.
const RENEWALS_OF_THE_LIVING: u8 = 2;
