//! Test programs that say the same whenever they run on the same sources: exhaustive models, simulations under given seeds, and what
//! the compiler says of mistakes. They are skipped while nothing that they are built from differs from a run that passed.
//!
//! A program belongs here only if it asks neither the network nor a clock, an engine, another process or chance; `tidy` holds them to
//! that, and to reading nothing but the packages that they are built from.

/// The programs, each as its package and its target.
pub(crate) const REPEATABLE: [(&str, &str); 6] = [
    ("greenroom-conformance", "conformance"),
    ("greenroom-explore", "bugs"),
    ("greenroom-explore", "explorer"),
    ("greenroom-explore", "worlds"),
    ("greenroom-mistakes", "compile_errors"),
    ("greenroom-protocols", "models"),
];
