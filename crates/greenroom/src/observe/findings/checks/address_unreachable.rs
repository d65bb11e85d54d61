//! The node's address does not lead back to it.

use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "address-unreachable",
    holds: Duration::from_secs(3),
    page: "#/nodes",
    remedy: "Give the node an address by which all nodes find it: `advertise` (--advertise HOST:PORT), or `listen` at one of its own.",
    look,
};

fn look(facts: &Facts, out: &mut Vec<Found>) {
    if let Some((address, why)) = &facts.unreachable {
        let title = format!("{} does not reach itself at {address}", facts.node);
        let text = format!("Other nodes are told to dial this address, and cannot join either: {why}.");
        out.push(Found::new(Level::Bad, Subject::node(&*facts.node), title, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::checks::titles;

    #[test]
    fn an_address_that_does_not_lead_back_is_found() {
        let unreachable = Some(("nohost:7000".to_owned(), "connection refused".to_owned()));
        let facts = Facts { node: "a".to_owned(), unreachable, ..Facts::default() };
        assert_eq!(titles(&CHECK, &facts), ["a does not reach itself at nohost:7000"]);
    }

    #[test]
    fn one_that_does_is_not() {
        assert!(titles(&CHECK, &Facts { node: "a".to_owned(), ..Facts::default() }).is_empty());
    }
}
