//! Operations of hosts are refused, and no code awaits their outcome.

use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "operations-refused",
    holds: Duration::ZERO,
    page: "#/kinds",
    remedy: "The log of the host says which operation of which actor is refused, and what to do; the turns went on without it.",
    look,
};

fn look(facts: &Facts, out: &mut Vec<Found>) {
    for (kind, refused, last) in facts.operations_refused.iter().filter(|(_, refused, _)| *refused >= ENOUGH) {
        let (subject, of) = match kind.as_str() {
            "" => (Subject::node(&*facts.node), "hosts"),
            kind => (Subject::kind(kind), kind),
        };
        let title = format!("Operations of {of} are refused");
        let text = format!("About {refused:.0} in the last minute; the last one: {last}.");
        out.push(Found::new(Level::Warn, subject, title, text).with("refused", refused.round(), ""));
    }
}

/// One refusal is enough, for half a minute and more: it fades as others come.
const ENOUGH: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::checks::titles;

    #[test]
    fn a_kind_whose_operations_are_refused_is_found_for_half_a_minute() {
        let refused = |refused| {
            let operations_refused = vec![("room".to_owned(), refused, "SetTimer: full".to_owned())];
            titles(&CHECK, &Facts { operations_refused, ..Facts::default() })
        };
        assert_eq!(refused(1.0), ["Operations of room are refused"]);
        assert!(refused(0.4).is_empty());
    }
}
