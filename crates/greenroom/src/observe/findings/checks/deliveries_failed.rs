//! Events of topics were not delivered to a subscriber, and nobody hears of that.

use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "deliveries-failed",
    holds: Duration::ZERO,
    page: "#/topics",
    remedy: "The node's log names each topic and reason. A subscriber that takes down its process is to be mended first; what must not be lost belongs in a state or a reliable message.",
    look,
};

fn look(facts: &Facts, out: &mut Vec<Found>) {
    let (failed, last) = &facts.deliveries_failed;
    if *failed >= ENOUGH {
        let title = format!("Events of topics at {} are not delivered", facts.node);
        let text = format!(
            "About {failed:.0} in the last minute failed for 30 s, took down three processes or fit no subscriber, and are given up; the \
             last one: {last}."
        );
        let found = Found::new(Level::Bad, Subject::node(&*facts.node), title, text);
        out.push(found.with("failed", failed.round(), ""));
    }
}

/// One event is enough, for half a minute and more: it fades as others come.
const ENOUGH: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::checks::titles;

    #[test]
    fn an_event_that_is_given_up_is_found_for_half_a_minute() {
        let failed = |failed| {
            let deliveries_failed = (failed, "topic room/lobby: a process died".to_owned());
            titles(&CHECK, &Facts { node: "a".to_owned(), deliveries_failed, ..Facts::default() })
        };
        assert_eq!(failed(1.0), ["Events of topics at a are not delivered"]);
        assert!(failed(0.4).is_empty());
    }
}
