//! Mutants of the room `vlb`.

use super::{Mutant, mutant};

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "a leader takes the state with the highest number, whatever its epoch",
        "leader.rs",
        "if found.version > self.found() &&",
        "if (if mutated!() { found.version.number > self.found().number } else { found.version > self.found() }) &&",
    ),
    mutant(
        "a leader's first version keeps the epoch before",
        "leader.rs",
        "self.latest.version.epoch = self.epoch;\n        for session",
        "if !mutated!() { self.latest.version.epoch = self.epoch; }\n        for session",
    ),
    mutant(
        "a retired leader accepts",
        "leader.rs",
        "if self.collecting.is_some() || self.retired || !addressed {",
        "if self.collecting.is_some() || self.retired && !mutated!() || !addressed {",
    ),
    mutant(
        "an update after a gap is applied",
        "leader.rs",
        ".saturating_add(1) && submission.settled_under >= epoch;",
        ".saturating_add(1) && (submission.settled_under >= epoch || mutated!());",
    ),
    mutant(
        "an instance goes back to an older version",
        "participant.rs",
        "(epoch < self.epoch || snapshot.version < self.confirmed.version)",
        "(epoch < self.epoch || snapshot.version < self.confirmed.version && !mutated!())",
    ),
    mutant(
        "a late answer counts for the request under way",
        "participant.rs",
        "let current = request == self.requests &&",
        "let current = (request == self.requests || mutated!()) &&",
    ),
    mutant(
        "an instance answers what an earlier leader collects",
        "participant.rs",
        "if epoch == self.epoch {\n                    out.push(Action::Collected",
        "if epoch == self.epoch || mutated!() {\n                    out.push(Action::Collected",
    ),
    mutant(
        "a leader that still collects hands over",
        "leader.rs",
        "self.collecting.is_none().then(|| self.latest.clone())",
        "(self.collecting.is_none() || mutated!()).then(|| self.latest.clone())",
    ),
    mutant(
        "what was collected for an earlier leader counts",
        "leader.rs",
        "self.collecting.as_mut().filter(|_| epoch == self.epoch)",
        "self.collecting.as_mut().filter(|_| epoch == self.epoch || mutated!())",
    ),
    mutant(
        "what was settled is not told under which leader",
        "participant.rs",
        "self.settled_under = epoch;",
        "if !mutated!() { self.settled_under = epoch; }",
    ),
];
