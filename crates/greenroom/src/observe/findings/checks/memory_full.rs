//! The process has nearly as much memory as it may.

use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "memory-full",
    holds: Duration::from_secs(10),
    page: "#/nodes",
    remedy: "Give it more, add a node, or let actors end sooner (`idle`); `greenroom status` says how many there are of each kind.",
    look,
};

fn look(facts: &Facts, out: &mut Vec<Found>) {
    let Some(memory) = facts.memory.filter(|memory| memory.limit > 0) else { return };
    let share = memory.resident as f64 / memory.limit as f64;
    if share <= FULL {
        return;
    }
    let percent = share * 100.0;
    let title = format!("{} has {percent:.0} % of the memory that it may have", facts.node);
    let text = "At the limit the system ends the process.";
    let found = Found::new(Level::Bad, Subject::node(&*facts.node), title, text);
    out.push(found.with("resident", memory.resident as f64, "bytes").with("limit", memory.limit as f64, "bytes"));
}

const FULL: f64 = 0.85;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::Memory;
    use crate::observe::findings::checks::titles;

    fn resident(resident: u64, limit: u64) -> Vec<String> {
        let memory = Some(Memory { resident, limit });
        titles(&CHECK, &Facts { node: "a".to_owned(), memory, ..Facts::default() })
    }

    #[test]
    fn a_process_that_is_nearly_full_is_found() {
        assert_eq!(resident(86, 100), ["a has 86 % of the memory that it may have"]);
    }

    #[test]
    fn one_with_room_or_without_a_limit_is_not() {
        assert!(resident(85, 100).is_empty() && resident(85, 0).is_empty());
    }
}
