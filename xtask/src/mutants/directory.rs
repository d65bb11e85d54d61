//! Mutants of the room `directory`.

use super::{Mutant, mutant};

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "an owner answers that an actor is nowhere before all have reported",
        "owner.rs",
        "if known != Resolution::Absent ||",
        "if known != Resolution::Absent && !mutated!() ||",
    ),
    mutant(
        "reports of the dead are not waited for",
        "owner.rs",
        "view.members.iter().filter(|(_, m)| m.status != Status::Joining)",
        "view.members.iter().filter(|(_, m)| m.status != Status::Joining && !(mutated!() && m.status == Status::Dead))",
    ),
    mutant(
        "a report from before the tenure counts",
        "owner.rs",
        "let counts = report.view >= self.tenure.since",
        "let counts = (report.view >= self.tenure.since || mutated!())",
    ),
    mutant(
        "a host takes a grant of an earlier view",
        "host.rs",
        "self.tenure.owner != Some(grant.by) || grant.view < self.tenure.since",
        "self.tenure.owner != Some(grant.by) || grant.view < self.tenure.since && !mutated!()",
    ),
    mutant(
        "a host takes a grant of the epoch at its floor",
        "host.rs",
        "grant.placed.epoch <= floor",
        "(grant.placed.epoch < floor || grant.placed.epoch == floor && !mutated!())",
    ),
    mutant(
        "epochs do not jump with the view",
        "mod.rs",
        "Epoch(self.0.saturating_add(1).max(version << 32))",
        "Epoch(self.0.saturating_add(1).max(if mutated!() { 0 } else { version << 32 }))",
    ),
    mutant(
        "an owner forgets the last epoch that a report told",
        "owner.rs",
        "self.last = self.last.max(placed.epoch);",
        "if !mutated!() { self.last = self.last.max(placed.epoch); }",
    ),
    mutant(
        "of two activations the older is kept",
        "owner.rs",
        "if known.epoch < placed.epoch { (placed, *known) } else { (*known, placed) }",
        "if (known.epoch < placed.epoch) != mutated!() { (placed, *known) } else { (*known, placed) }",
    ),
    mutant(
        "who was joining when the old owner began is not asked",
        "tenure.rs",
        ".chain(was_joining)",
        ".chain(was_joining.filter(|_| !mutated!()))",
    ),
    mutant(
        "who joined between two owners is not asked",
        "tenure.rs",
        "let joined_between = (old.next_node..new.next_node).map(NodeId);",
        "let joined_between = (old.next_node..new.next_node).map(NodeId).filter(|_| !mutated!());",
    ),
    mutant(
        "a new owner keeps the entries of an earlier tenure",
        "owner.rs",
        "if begins {\n            self.entries.clear();",
        "if begins {\n            if !mutated!() { self.entries.clear(); }",
    ),
    mutant(
        "a host's floor does not rise",
        "host.rs",
        "self.floor = self.floor.max(epoch);",
        "if !mutated!() { self.floor = self.floor.max(epoch); }",
    ),
    mutant(
        "a host reports to an owner of a view that it has not seen",
        "host.rs",
        "self.version() >= view && self.tenure.owner == Some(from)",
        "(self.version() >= view || mutated!()) && self.tenure.owner == Some(from)",
    ),
    mutant(
        "entries at nodes that serve no more are kept",
        "owner.rs",
        "!self.view.as_ref().is_some_and(|view| view.is_serving(node))",
        "!mutated!() && !self.view.as_ref().is_some_and(|view| view.is_serving(node))",
    ),
    mutant(
        "an actor is activated anew while the lease of its last host may hold",
        "owner.rs",
        "Some(over) if over > now => return Resolution::Wait { until: Some(over) },\n                Some(_) => {}",
        "Some(over) if over > now && !mutated!() => return Resolution::Wait { until: Some(over) },\n                Some(_) => {}",
    ),
    mutant(
        "any message ends a move",
        "moves.rs",
        "if self.entries.get(key) == Some(&placed) {",
        "if self.entries.get(key) == Some(&placed) || mutated!() {",
    ),
];
