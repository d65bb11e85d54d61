//! A turn keeps its thread, without an await.

use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found};
use crate::observe::level::Level;
use crate::observe::subject::Subject;
use crate::shard::STUCK_AFTER;

pub(super) const CHECK: Check = Check {
    name: "stuck-shard",
    // What it looks for has held for that long when it is seen.
    holds: Duration::ZERO,
    page: "#/waits",
    remedy: "Put what blocks or computes for long on a thread of its own: `#[blocking]` before the method, or `cx.blocking`.",
    look,
};

fn look(facts: &Facts, out: &mut Vec<Found>) {
    for (index, shard) in facts.shards.iter().enumerate().filter(|(_, shard)| shard.in_one_go >= STUCK) {
        let seconds = shard.in_one_go.as_secs_f64();
        let title = format!("Thread {index} of {} is stuck in a turn without an await", facts.node);
        let before =
            shard.stalled_by.as_ref().map(|(method, each)| format!("{method} has done so before, for {each:?}."));
        let mut text = before.unwrap_or_else(|| "Its other actors wait.".to_owned());
        if shard.in_one_go >= STUCK_AFTER {
            text.push_str(" The node is not ready as long as that lasts.");
        }
        let subject = Subject::shard(&*facts.node, index as u16);
        out.push(Found::new(Level::Bad, subject, title, text).with("stuck", seconds, "s"));
    }
}

const STUCK: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::Shard;
    use crate::observe::findings::checks::titles;

    fn in_one_go(millis: u64) -> Vec<String> {
        let shard = Shard { in_one_go: Duration::from_millis(millis), ..Shard::default() };
        titles(&CHECK, &Facts { node: "a".to_owned(), shards: vec![Shard::default(), shard], ..Facts::default() })
    }

    #[test]
    fn a_thread_that_looks_at_nothing_else_for_a_second_is_found() {
        assert_eq!(in_one_go(1_000), ["Thread 1 of a is stuck in a turn without an await"]);
    }

    #[test]
    fn one_that_computes_for_less_is_not() {
        assert!(in_one_go(999).is_empty());
    }
}
