//! Nodes have different settings for a kind, or different outlets.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "settings-differ",
    holds: Duration::ZERO,
    page: "#/kinds",
    remedy: "Give all nodes the same program, the same `[kinds]` and the same `[reliable.outlets]`: each node decides by its own.",
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
    compare_outlets(facts, out);
}

/// Finds outlets that some nodes have and others lack: there, each turn with an output to such an outlet fails.
fn compare_outlets(facts: &Facts, out: &mut Vec<Found>) {
    let mut nodes: BTreeMap<&[String], Vec<&str>> = BTreeMap::new();
    for (node, outlets) in &facts.outlets {
        nodes.entry(outlets).or_default().push(node);
    }
    if nodes.len() > 1 {
        let sides = nodes.into_iter().map(|(outlets, nodes)| format!("{}: {outlets:?}", nodes.join(", ")));
        let text = sides.collect::<Vec<_>>().join("; ");
        let title = "Nodes have different outlets".to_owned();
        out.push(Found::new(Level::Warn, Subject::default(), title, text));
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
    fn nodes_with_different_outlets_are_found_and_nodes_without_reliable_actors_are_not_compared() {
        let found = |outlets: &[(&str, &[&str])]| {
            let outlets = outlets
                .iter()
                .map(|(node, names)| ((*node).to_owned(), names.iter().map(|name| (*name).to_owned()).collect()));
            titles(&CHECK, &Facts { outlets: outlets.collect(), ..Facts::default() })
        };
        assert_eq!(found(&[("a", &["hook"]), ("b", &[])]), ["Nodes have different outlets"]);
        assert!(found(&[("a", &["hook"]), ("b", &["hook"])]).is_empty());
    }

    #[test]
    fn another_version_may_do_as_it_likes() {
        assert!(kinds(&[("a", 1, "balanced"), ("b", 2, "hash")]).is_empty());
        assert!(kinds(&[("a", 1, "hash"), ("b", 1, "hash")]).is_empty());
    }
}
