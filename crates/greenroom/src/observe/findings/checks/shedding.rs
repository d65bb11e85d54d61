//! A node turns calls away.

use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "shedding",
    holds: Duration::from_secs(5),
    page: "#/kinds",
    remedy: "Make the method cheaper, add a node, or let callers ask less often; those that are turned away are told when to try again.",
    look,
};

fn look(facts: &Facts, out: &mut Vec<Found>) {
    let Some(worst) = facts.shards.iter().map(|shard| shard.shedding).max().filter(|share| *share > 0) else { return };
    let percent = f64::from(worst) / 10.0;
    let title = format!("{} turns away {percent:.0} % of outside calls", facts.node);
    let busiest = facts.methods.iter().max_by_key(|method| method.took).filter(|method| !method.took.is_zero());
    let text = match busiest {
        Some(method) => format!("{}.{} takes most of its time.", method.kind, method.method),
        None => "It has more work than it can do in time.".to_owned(),
    };
    let found = Found::new(Level::Bad, Subject::node(&*facts.node), title, text);
    out.push(found.with("turned away", percent, "%"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::checks::titles;
    use crate::observe::findings::{Method, Shard};

    fn shedding(shares: &[u32]) -> Facts {
        let shards = shares.iter().map(|share| Shard { shedding: *share, ..Shard::default() }).collect();
        Facts { node: "a".to_owned(), shards, ..Facts::default() }
    }

    #[test]
    fn a_node_that_turns_calls_away_is_found_once_with_who_takes_its_time() {
        let method = |name: &str, millis| Method {
            kind: "room".to_owned(),
            method: name.to_owned(),
            took: Duration::from_millis(millis),
            ..Method::default()
        };
        let facts = Facts { methods: vec![method("read", 3), method("post", 900)], ..shedding(&[120, 400]) };
        assert_eq!(titles(&CHECK, &facts), ["a turns away 40 % of outside calls"]);
        let mut found = Vec::new();
        look(&facts, &mut found);
        assert_eq!(found[0].text, "room.post takes most of its time.");
    }

    #[test]
    fn one_that_turns_nobody_away_is_not() {
        assert!(titles(&CHECK, &shedding(&[0, 0])).is_empty());
    }
}
