//! Turns of this node wait for each other.

use std::time::Duration;

use greenroom_protocols::wait_for::WaitFor;

use crate::observe::findings::{Check, Facts, Found};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "deadlock",
    holds: Duration::ZERO,
    page: "#/waits",
    remedy: "Let one of them send instead of call, or call outside of the turn that the other waits for.",
    look,
};

fn look(facts: &Facts, out: &mut Vec<Found>) {
    let mut graph = WaitFor::default();
    for turn in &facts.long_turns {
        turn.waiters.iter().for_each(|waiter| graph.insert(waiter, &turn.actor));
    }
    for cycle in graph.cycles() {
        let title = format!("{} and {} others wait for each other", cycle[0], cycle.len() - 1);
        let text = format!("{} -> {}: their calls end at their deadlines.", cycle.join(" -> "), cycle[0]);
        out.push(Found::new(Level::Bad, Subject::actor(&*cycle[0]), title, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::checks::titles;
    use crate::shard::waits::LongTurn;

    fn waits(waits: &[(&str, &str)]) -> Vec<String> {
        let turn = |(waiter, actor): &(&str, &str)| LongTurn {
            actor: (*actor).to_owned(),
            turn: format!("{actor}.post"),
            running_seconds: 40.0,
            waiters: vec![(*waiter).to_owned()],
            queued: 1,
        };
        titles(&CHECK, &Facts { long_turns: waits.iter().map(turn).collect(), ..Facts::default() })
    }

    #[test]
    fn two_turns_that_wait_for_each_other_are_found() {
        assert_eq!(waits(&[("room/a", "user/b"), ("user/b", "room/a")]), ["room/a and 1 others wait for each other"]);
    }

    #[test]
    fn a_chain_of_them_is_not() {
        assert!(waits(&[("room/a", "user/b"), ("user/b", "user/c")]).is_empty());
    }
}
