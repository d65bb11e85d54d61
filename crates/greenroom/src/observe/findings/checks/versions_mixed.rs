//! Nodes host several versions of a kind's interface, for long.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "versions-mixed",
    holds: Duration::from_secs(3_600),
    page: "#/nodes",
    remedy: "Finish the upgrade, or take it back: drain the nodes of the one version, one after the other.",
    look,
};

fn look(facts: &Facts, out: &mut Vec<Found>) {
    let mut kinds: BTreeMap<&str, BTreeMap<u16, BTreeSet<&str>>> = BTreeMap::new();
    for kind in &facts.kinds {
        kinds.entry(&kind.name).or_default().entry(kind.version).or_default().insert(&kind.node);
    }
    for (kind, versions) in kinds.into_iter().filter(|(_, versions)| versions.len() > 1) {
        let title = format!("{} versions of {kind} are hosted", versions.len());
        let sides = versions.into_iter().map(|(version, nodes)| {
            let nodes: Vec<&str> = nodes.into_iter().collect();
            format!("version {version} by {}", nodes.join(", "))
        });
        out.push(Found::new(Level::Hint, Subject::kind(kind), title, sides.collect::<Vec<_>>().join("; ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::Kind;
    use crate::observe::findings::checks::titles;

    fn hosted(versions: &[u16]) -> Vec<String> {
        let kind = |version: &u16| Kind { name: "room".to_owned(), version: *version, ..Kind::default() };
        titles(&CHECK, &Facts { kinds: versions.iter().map(kind).collect(), ..Facts::default() })
    }

    #[test]
    fn two_versions_are_found_and_one_is_not() {
        assert_eq!(hosted(&[1, 1, 2]), ["2 versions of room are hosted"]);
        assert!(hosted(&[2, 2]).is_empty());
    }
}
