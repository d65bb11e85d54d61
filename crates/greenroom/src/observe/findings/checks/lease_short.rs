//! The node's lease was not renewed for long.

use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "lease-short",
    // What it looks for has held for two seconds of the usual four when it is seen.
    holds: Duration::ZERO,
    page: "#/nodes",
    remedy: "See whether the table's store is slow or this machine has no time for the node; a longer `lease` bears more.",
    look,
};

fn look(facts: &Facts, out: &mut Vec<Found>) {
    let Some(lease) = facts.lease.filter(|lease| lease.left < lease.length / 2) else { return };
    let left = lease.left.as_secs_f64();
    let title = match lease.left.is_zero() {
        true => format!("The lease of {} has run out", facts.node),
        false => format!("The lease of {} ends in {left:.1} s", facts.node),
    };
    let text = "It is renewed four times as often as it lasts. Without one the node starts no turn.";
    let found = Found::new(Level::Bad, Subject::node(&*facts.node), title, text);
    out.push(found.with("left", left, "s").with("lease", lease.length.as_secs_f64(), "s"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::Lease;
    use crate::observe::findings::checks::titles;

    fn left(millis: u64) -> Vec<String> {
        let lease = Some(Lease { left: Duration::from_millis(millis), length: Duration::from_secs(10) });
        titles(&CHECK, &Facts { node: "a".to_owned(), lease, ..Facts::default() })
    }

    #[test]
    fn a_lease_that_was_not_renewed_for_half_of_its_time_is_found() {
        assert_eq!(left(4_900), ["The lease of a ends in 4.9 s"]);
        assert_eq!(left(0), ["The lease of a has run out"]);
    }

    #[test]
    fn one_that_is_renewed_late_or_not_needed_is_not() {
        assert!(left(5_000).is_empty());
        assert!(titles(&CHECK, &Facts::default()).is_empty());
    }
}
