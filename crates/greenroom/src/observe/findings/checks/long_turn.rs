//! Turns run for long.

use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "long-turn",
    holds: Duration::ZERO,
    page: "#/waits",
    remedy: "See what it waits for; what must take long belongs into an actor of its own, or behind a call with a deadline.",
    look,
};

fn look(facts: &Facts, out: &mut Vec<Found>) {
    let mut turns: Vec<_> = facts.long_turns.iter().collect();
    turns.sort_by(|one, other| other.running_seconds.total_cmp(&one.running_seconds));
    for turn in turns.into_iter().take(TOLD_MAX) {
        let title = format!("{} has run for {:.0} s", turn.turn, turn.running_seconds);
        let text = format!("{} messages wait behind it.", turn.queued);
        let found = Found::new(Level::Warn, Subject::actor(&*turn.actor), title, text);
        out.push(found.with("running", turn.running_seconds, "s").with("waiting", turn.queued as f64, ""));
    }
}

/// Those that are told of: a hundred of one cause are no more news than three.
const TOLD_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::checks::titles;
    use crate::shard::waits::LongTurn;

    #[test]
    fn the_longest_of_long_turns_are_found_and_not_all_of_a_hundred() {
        let turn = |number: u32| LongTurn {
            actor: format!("room/{number}"),
            turn: format!("room/{number}.post"),
            running_seconds: f64::from(number),
            waiters: Vec::new(),
            queued: 0,
        };
        let facts = Facts { long_turns: (1..=100).map(turn).collect(), ..Facts::default() };
        let found = titles(&CHECK, &facts);
        assert_eq!((found.len(), &*found[0]), (TOLD_MAX, "room/100.post has run for 100 s"));
    }
}
