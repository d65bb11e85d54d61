//! Messages of reliable actors are parked.

use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "parked",
    holds: Duration::ZERO,
    page: "#/nodes",
    remedy: "`greenroom reliable parked` says which and why; retry them when the cause is gone, or drop them.",
    look,
};

fn look(facts: &Facts, out: &mut Vec<Found>) {
    if facts.parked > 0 {
        let title = format!("{} messages are parked at {}", facts.parked, facts.node);
        let text = "Their turns have failed again and again, and others went on without them.";
        let found = Found::new(Level::Bad, Subject::node(&*facts.node), title, text);
        out.push(found.with("parked", facts.parked as f64, ""));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::checks::titles;

    #[test]
    fn one_parked_message_is_found_and_none_is_not() {
        let parked = |parked| titles(&CHECK, &Facts { node: "a".to_owned(), parked, ..Facts::default() });
        assert_eq!(parked(1), ["1 messages are parked at a"]);
        assert!(parked(0).is_empty());
    }
}
