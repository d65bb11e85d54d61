//! Saves of states meet what others have written.

use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "saves-in-conflict",
    holds: Duration::from_secs(10),
    page: "#/state",
    remedy: "Somebody else writes the same states: a second cluster or system on the same store, or people. Give each a store or prefix of its own.",
    look,
};

fn look(facts: &Facts, out: &mut Vec<Found>) {
    let saves = facts.saves_in_conflict;
    if saves.of_them >= CONFLICTS_MIN && saves.value() > SHARE_MAX {
        let title = format!("Saves meet conflicts at {}", facts.node);
        let text = format!(
            "About {:.0} of {:.0} in the last minute found what somebody else has written.",
            saves.of_them, saves.all
        );
        let found = Found::new(Level::Warn, Subject::node(&*facts.node), title, text);
        out.push(found.with("conflicts", saves.of_them.round(), "").with("share", saves.value(), ""));
    }
}

/// One that a person has changed meets one conflict.
const CONFLICTS_MIN: f64 = 3.0;
const SHARE_MAX: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::Share;
    use crate::observe::findings::checks::titles;

    #[test]
    fn conflicts_over_one_in_twenty_are_found_and_fewer_are_not() {
        let conflicts = |all, of_them| {
            let saves_in_conflict = Share { all, of_them };
            titles(&CHECK, &Facts { node: "a".to_owned(), saves_in_conflict, ..Facts::default() })
        };
        assert_eq!(conflicts(20.0, 3.0), ["Saves meet conflicts at a"]);
        assert!(conflicts(20.0, 2.0).is_empty());
        assert!(conflicts(1_000.0, 49.0).is_empty());
    }
}
