//! Nodes do not say the same of a kind.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "settings-differ",
    holds: Duration::ZERO,
    page: "#/kinds",
    remedy: "Give all nodes the same program and the same `[kinds]`: what each asks is decided by the one that it asks.",
    look,
};

/// Placement, instances and home, and the nodes that say so.
type Sides<'a> = BTreeMap<(&'a str, &'a str, &'a str), BTreeSet<&'a str>>;

fn look(facts: &Facts, out: &mut Vec<Found>) {
    let mut kinds: BTreeMap<(&str, u16), Sides<'_>> = BTreeMap::new();
    for kind in &facts.kinds {
        let said = (&*kind.placement, &*kind.instances, &*kind.home);
        let version = kinds.entry((&kind.name, kind.version)).or_default();
        version.entry(said).or_default().insert(&kind.node);
    }
    for ((kind, _), said) in kinds.into_iter().filter(|(_, said)| said.len() > 1) {
        let sides = said.into_iter().map(|((placement, instances, home), nodes)| {
            let home = if home.is_empty() { "nowhere" } else { home };
            let nodes: Vec<&str> = nodes.into_iter().collect();
            format!("{}: placement {placement:?}, instances {instances}, home {home}", nodes.join(", "))
        });
        let text = sides.collect::<Vec<_>>().join("; ");
        out.push(Found::new(Level::Warn, Subject::kind(kind), format!("Nodes disagree on {kind}"), text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::Kind;
    use crate::observe::findings::checks::titles;

    fn kinds(said: &[(&str, u16, &str)]) -> Vec<String> {
        let kind = |(node, version, placement): &(&str, u16, &str)| Kind {
            node: (*node).to_owned(),
            name: "room".to_owned(),
            version: *version,
            placement: (*placement).to_owned(),
            ..Kind::default()
        };
        titles(&CHECK, &Facts { kinds: said.iter().map(kind).collect(), ..Facts::default() })
    }

    #[test]
    fn a_kind_that_nodes_place_in_two_ways_is_found() {
        assert_eq!(kinds(&[("a", 1, "balanced"), ("b", 1, "hash")]), ["Nodes disagree on room"]);
    }

    #[test]
    fn another_version_may_do_as_it_likes() {
        assert!(kinds(&[("a", 1, "balanced"), ("b", 2, "hash")]).is_empty());
        assert!(kinds(&[("a", 1, "hash"), ("b", 1, "hash")]).is_empty());
    }
}
