//! One thread has more to do than it can, while others of the node have time.

use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "busy-shard",
    holds: Duration::from_secs(30),
    page: "#/kinds",
    remedy: "Look for one actor that does it all: split its work over several keys, or make what only reads a read (`&self`).",
    look,
};

fn look(facts: &Facts, out: &mut Vec<Found>) {
    for (index, shard) in facts.shards.iter().enumerate().filter(|(_, shard)| shard.busy > BUSY) {
        let mut others = facts.shards.iter().enumerate().filter(|(other, _)| *other != index).peekable();
        if others.peek().is_none() || others.any(|(_, other)| other.busy >= IDLE) {
            continue;
        }
        let percent = shard.busy * 100.0;
        let title = format!("Thread {index} of {} is {percent:.0} % busy", facts.node);
        let text = format!("The others have time. {} actors are on it.", shard.activations);
        let subject = Subject::shard(&*facts.node, index as u16);
        out.push(Found::new(Level::Warn, subject, title, text).with("busy", percent, "%"));
    }
}

/// Busier than this part of the time; the others less than that.
const BUSY: f64 = 0.9;
const IDLE: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::Shard;
    use crate::observe::findings::checks::titles;

    fn busy(shards: &[f64]) -> Vec<String> {
        let shards = shards.iter().map(|busy| Shard { busy: *busy, ..Shard::default() }).collect();
        titles(&CHECK, &Facts { node: "a".to_owned(), shards, ..Facts::default() })
    }

    #[test]
    fn one_busy_thread_among_idle_ones_is_found() {
        assert_eq!(busy(&[0.1, 0.95, 0.4]), ["Thread 1 of a is 95 % busy"]);
    }

    #[test]
    fn a_node_that_is_busy_all_over_or_has_one_thread_is_not() {
        for shards in [&[0.95, 0.95, 0.1][..], &[0.95, 0.6], &[0.95], &[0.89, 0.1]] {
            assert!(busy(shards).is_empty(), "{shards:?}");
        }
    }
}
