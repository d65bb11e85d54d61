//! Saves of states take long.

use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "saves-slow",
    holds: Duration::from_secs(10),
    page: "#/nodes",
    remedy: "Look at the store of the states and the way to it: turns that save wait for that long.",
    look,
};

fn look(facts: &Facts, out: &mut Vec<Found>) {
    let saves = facts.saves_slow;
    if saves.of_them >= SLOW_MIN && saves.value() > SHARE_MAX {
        let title = format!("Saves take over 1 s at {}", facts.node);
        let text = format!("About {:.0} of {:.0} in the last minute.", saves.of_them, saves.all);
        let found = Found::new(Level::Warn, Subject::node(&*facts.node), title, text);
        out.push(found.with("saves over 1 s", saves.of_them.round(), "").with("share", saves.value(), ""));
    }
}

/// A few slow ones in a minute are none of anybody's concern.
const SLOW_MIN: f64 = 3.0;
const SHARE_MAX: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::Share;
    use crate::observe::findings::checks::titles;

    #[test]
    fn saves_that_are_slow_are_found_and_a_few_among_many_are_not() {
        let slow = |all, of_them| {
            let saves_slow = Share { all, of_them };
            titles(&CHECK, &Facts { node: "a".to_owned(), saves_slow, ..Facts::default() })
        };
        assert_eq!(slow(10.0, 3.0), ["Saves take over 1 s at a"]);
        assert!(slow(10.0, 2.0).is_empty());
        assert!(slow(1_000.0, 20.0).is_empty());
    }
}
