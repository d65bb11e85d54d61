//! Mutants of the room `membership`.

use super::{Mutant, mutant};

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "a lease counts from when its renewal was answered",
        "machine.rs",
        "let until = began + lease.length;",
        "let until = if mutated!() { now + lease.length } else { began + lease.length };",
    ),
    mutant(
        "clocks are taken to run alike",
        "mod.rs",
        "length + length * self.drift_permille / 1000",
        "if mutated!() { length } else { length + length * self.drift_permille / 1000 }",
    ),
    mutant(
        "a lease is taken for unchanged though the leases were not read after the table",
        "sightings.rs",
        "Some(seen) if leases_read => seen.since,",
        "Some(seen) if leases_read || mutated!() => seen.since,",
    ),
    mutant(
        "one vote is enough to declare a node dead",
        "plan.rs",
        "votes >= self.config.votes.min(active - 1)",
        "votes >= if mutated!() { 1 } else { self.config.votes.min(active - 1) }",
    ),
    mutant(
        "a node that finds itself dead in the table goes on",
        "machine.rs",
        "Some(Status::Dead) | None => {\n                    let left",
        "Some(Status::Dead) if mutated!() => {}\n                Some(Status::Dead) | None => {\n                    let left",
    ),
    mutant(
        "a view counts as covered by a renewal that its reading did not begin before",
        "machine.rs",
        "self.table = Some((table, etag));\n        self.settle(now, access.covers, out);\n        self.plan(now, out);",
        "self.table = Some((table, etag));\n        let covers = if mutated!() { self.lease.renewed } else { access.covers };\n        self.settle(now, covers, out);\n        self.plan(now, out);",
    ),
    mutant(
        "a joiner becomes active without having renewed its lease",
        "plan.rs",
        "if admitted && (renewed || self.config.lease.is_none())",
        "if admitted && (renewed || self.config.lease.is_none() || mutated!())",
    ),
    mutant(
        "a joiner becomes active when one node has reached it",
        "plan.rs",
        "next.active().all(|node| reached.contains(&node));",
        "(next.active().all(|node| reached.contains(&node)) || mutated!() && next.active().any(|node| reached.contains(&node)));",
    ),
    mutant(
        "a suspicion counts as young though it is not known when it was written",
        "sightings.rs",
        "self.suspicions.get(&name).copied().unwrap_or(looked)",
        "self.suspicions.get(&name).copied().unwrap_or(if mutated!() { looked.or(Some(Timestamp::from_nanos(u64::MAX / 2))) } else { looked })",
    ),
    mutant(
        "votes of nodes that are not active count",
        "plan.rs",
        "&& table.status(s.by) == Some(Status::Active))",
        "&& (mutated!() || table.status(s.by) == Some(Status::Active)))",
    ),
    mutant(
        "who had a newcomer's name stays in the table",
        "plan.rs",
        "next.kill(id, End::StartedAnew);",
        "if !mutated!() { next.kill(id, End::StartedAnew); }",
    ),
    mutant(
        "an older table is taken for news",
        "machine.rs",
        "if table.version < known {",
        "if table.version < known && !mutated!() {",
    ),
    mutant(
        "a joiner declares dead whom it hears",
        "plan.rs",
        "if gone && !reached.contains(&node) {",
        "if gone && (!reached.contains(&node) || mutated!()) {",
    ),
    mutant(
        "a write of the table is covered from when it ends",
        "machine.rs",
        "covers: self.lease.renewed, write: Some((next.clone(), id))",
        "covers: if mutated!() { Some(now) } else { self.lease.renewed }, write: Some((next.clone(), id))",
    ),
    mutant(
        "a lease that ran out is enough to be declared dead, without a suspicion",
        "plan.rs",
        "(suspected && ran_out)",
        "(suspected && ran_out) || ran_out && mutated!()",
    ),
    mutant(
        "versions rise over joining nodes that read less",
        "plan.rs",
        "row.member.status != Status::Dead && !row.member.draining",
        "row.member.status != Status::Dead && !row.member.draining && !(mutated!() && row.member.status == Status::Joining)",
    ),
];
