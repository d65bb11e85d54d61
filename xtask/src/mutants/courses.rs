//! Mutants of the module `courses`.

use super::{Mutant, mutant};

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "ways are forgotten while something may be under way",
        "courses.rs",
        "now.since(self.dropped) >= KEPT ||",
        "now.since(self.dropped) >= (if mutated!() { KEPT / 2 } else { KEPT }) ||",
    ),
    mutant(
        "a call that went another way is taken for the last that went round",
        "courses.rs",
        "&& *by == Some(to)",
        "&& (*by == Some(to) || mutated!())",
    ),
];
