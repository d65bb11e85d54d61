//! The names that the library has for its own kinds and placements.

/// Whether the kind is the library's own, which nobody outside of it calls.
pub(crate) fn is_built_in(kind: &str) -> bool {
    kind == TOPICS || kind.starts_with(BUILT_IN)
}

/// What the names of built-in kinds begin with, but for that of topics.
const BUILT_IN: &str = "greenroom.";
/// The placement that other nodes see for stateless workers: any node that hosts the kind.
pub(crate) const WORKERS: &str = "workers";
/// The placement that other nodes see for reliable kinds: their partitions say where they are.
pub(crate) const RELIABLE: &str = "reliable";
/// The placement of partitions.
pub(crate) const HOME: &str = "greenroom.home";
/// The kind of topics.
pub(crate) const TOPICS: &str = "topics";
