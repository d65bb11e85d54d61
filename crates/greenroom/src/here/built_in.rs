//! The names that the library has for its own kinds and placements.

/// True for the kinds that the library itself brings: programs and hosts cannot offer kinds of these names.
pub(crate) fn is_built_in(kind: &str) -> bool {
    kind == TOPICS || is_internal(kind)
}

/// True for names of internal kinds: their messages come from nodes of the cluster alone, and nothing outside of it can address them.
/// It decides what the [type](crate::actor::interface::Interface::INTERNAL) of a kind says, and holds for kinds of other builds, too.
pub(crate) const fn is_internal(kind: &str) -> bool {
    let (kind, namespace) = (kind.as_bytes(), INTERNAL.as_bytes());
    let mut at = 0;
    while at < namespace.len() {
        if at >= kind.len() || kind[at] != namespace[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// Namespace of the internal kinds.
const INTERNAL: &str = "greenroom.";
/// The placement that other nodes see for stateless workers: any node that hosts the kind.
pub(crate) const WORKERS: &str = "workers";
/// The placement that other nodes see for reliable kinds: their partitions say where they are.
pub(crate) const RELIABLE: &str = "reliable";
/// The placement of partitions.
pub(crate) const HOME: &str = "greenroom.home";
/// The kind of topics.
pub(crate) const TOPICS: &str = "topics";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_namespace_of_internal_kinds_is_a_prefix_with_its_dot() {
        for internal in ["greenroom.", "greenroom.partition", "greenroom.of.a.later.build"] {
            assert!(is_internal(internal) && is_built_in(internal), "{internal}");
        }
        for open in ["", "green", "greenroom", "greenroom_partition", "Greenroom.partition", "a.greenroom.b"] {
            assert!(!is_built_in(open), "{open}");
        }
        assert!(is_built_in(TOPICS) && !is_internal(TOPICS), "topics are there for everybody");
    }
}
