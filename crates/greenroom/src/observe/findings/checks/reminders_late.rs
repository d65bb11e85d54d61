//! Ticks of reminders are late.

use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "reminders-late",
    holds: Duration::from_secs(10),
    page: "#/reminders",
    remedy: "See whether the actors that are to be reminded are slow or refuse (`greenroom turns`), and whether the store answers: what is late comes when they do.",
    look,
};

fn look(facts: &Facts, out: &mut Vec<Found>) {
    if facts.tick_late > LATE {
        let title = format!("Reminders are late at {}", facts.node);
        let late = facts.tick_late.as_secs_f64();
        let text = format!("The tick that is late longest has been due for {late:.0} s, and its turn has not run.");
        let found = Found::new(Level::Warn, Subject::node(&*facts.node), title, text);
        out.push(found.with("late", late, "s"));
    }
}

/// Ticks are late by so much when a node has just died that had their reminders.
const LATE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::checks::titles;

    #[test]
    fn a_tick_that_is_late_by_over_ten_seconds_is_found_and_one_by_ten_is_not() {
        let late = |seconds| {
            let tick_late = Duration::from_secs(seconds);
            titles(&CHECK, &Facts { node: "a".to_owned(), tick_late, ..Facts::default() })
        };
        assert_eq!(late(11), ["Reminders are late at a"]);
        assert!(late(10).is_empty());
    }
}
