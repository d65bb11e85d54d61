//! Mutants of the room `host`.

use super::{Mutant, mutant};

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "a renewed lease of a host outlasts its node's lease",
        "sessions.rs",
        "let (lease, patience, checks) = (self.lease(now), self.settings.lease, self.settings.checks);",
        "let (mut lease, patience, checks) = (self.lease(now), self.settings.lease, self.settings.checks);\n        if mutated!() { lease = patience; }",
    ),
    mutant(
        "a turn with another open request takes room again",
        "lanes/turns.rs",
        "run.requests -= 1;\n        if run.requests == 0",
        "run.requests -= 1;\n        if (run.requests == 0 || mutated!())",
    ),
];
