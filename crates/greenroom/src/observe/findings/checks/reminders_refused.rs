//! Ticks of reminders were refused for good.

use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "reminders-refused",
    holds: Duration::from_secs(10),
    page: "#/reminders",
    remedy: "The node's log says why; cancel those whose actors or methods are no more by `greenroom reminders cancel`.",
    look,
};

fn look(facts: &Facts, out: &mut Vec<Found>) {
    if facts.ticks_refused >= 1.0 {
        let title = format!("Reminders are refused for good at {}", facts.node);
        let text = format!("About {:.0} ticks in the last minute; they do not come again.", facts.ticks_refused);
        let found = Found::new(Level::Warn, Subject::node(&*facts.node), title, text);
        out.push(found.with("refused", facts.ticks_refused.round(), ""));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::checks::titles;

    #[test]
    fn ticks_refused_of_late_are_found_and_those_of_long_ago_are_not() {
        let refused =
            |ticks_refused| titles(&CHECK, &Facts { node: "a".to_owned(), ticks_refused, ..Facts::default() });
        assert_eq!(refused(2.0), ["Reminders are refused for good at a"]);
        assert!(refused(0.5).is_empty());
    }
}
