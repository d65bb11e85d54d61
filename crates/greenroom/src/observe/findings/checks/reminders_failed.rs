//! Ticks of reminders have failed in all their attempts.

use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "reminders-failed",
    holds: Duration::ZERO,
    page: "#/reminders",
    remedy: "The log of the actor's node or host says what the turns failed with; mend that and set reminders that tick once again. `greenroom reminders list` shows parked ones, and `greenroom reminders retry` lets them go on.",
    look,
};

fn look(facts: &Facts, out: &mut Vec<Found>) {
    let (failed, last) = &facts.ticks_failed;
    if *failed >= ENOUGH {
        let title = format!("Ticks of reminders have failed at {}", facts.node);
        let text = format!(
            "About {failed:.0} in the last minute failed in all their attempts or took down their processes, and are given up; the last \
             one: {last}."
        );
        let found = Found::new(Level::Bad, Subject::node(&*facts.node), title, text);
        out.push(found.with("failed", failed.round(), ""));
    }
}

/// One tick is enough, for half a minute and more: it fades as others come.
const ENOUGH: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::checks::titles;

    #[test]
    fn a_tick_that_is_given_up_is_found_for_half_a_minute() {
        let failed = |failed| {
            let ticks_failed = (failed, "\"pay\" of purse/a".to_owned());
            titles(&CHECK, &Facts { node: "a".to_owned(), ticks_failed, ..Facts::default() })
        };
        assert_eq!(failed(1.0), ["Ticks of reminders have failed at a"]);
        assert!(failed(0.4).is_empty());
    }
}
