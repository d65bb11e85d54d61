//! Messages wait for long before their turns.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found, Share};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "mailbox-waits",
    holds: Duration::from_secs(10),
    page: "#/kinds",
    remedy: "See which method of the kind takes its time; what only reads can be a read (`&self`), and a key with less behind it waits less.",
    look,
};

fn look(facts: &Facts, out: &mut Vec<Found>) {
    let mut kinds: BTreeMap<&str, Share> = BTreeMap::new();
    for method in &facts.methods {
        let waited = kinds.entry(&method.kind).or_default();
        waited.all += method.waited.all;
        waited.of_them += method.waited.of_them;
    }
    for (kind, waited) in kinds {
        if waited.of_them < MANY || waited.value() < OFTEN {
            continue;
        }
        let percent = waited.value() * 100.0;
        let title = format!("Messages of {kind} wait for over a second");
        let text = format!("{percent:.0} % of those of the last minute did, before their turns began.");
        out.push(Found::new(Level::Warn, Subject::kind(kind), title, text).with("waited", percent, "%"));
    }
}

/// So many of the last minute, and such a part of them.
const MANY: f64 = 10.0;
const OFTEN: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::Method;
    use crate::observe::findings::checks::titles;

    fn waited(methods: &[(f64, f64)]) -> Vec<String> {
        let method = |(all, of_them): &(f64, f64)| Method {
            kind: "room".to_owned(),
            waited: Share { all: *all, of_them: *of_them },
            ..Method::default()
        };
        titles(&CHECK, &Facts { methods: methods.iter().map(method).collect(), ..Facts::default() })
    }

    #[test]
    fn a_kind_whose_messages_wait_for_long_is_found() {
        assert_eq!(waited(&[(50.0, 8.0), (10.0, 5.0)]), ["Messages of room wait for over a second"]);
    }

    #[test]
    fn few_that_waited_or_a_small_part_are_not() {
        assert!(waited(&[(10.0, 9.0)]).is_empty(), "few");
        assert!(waited(&[(1_000.0, 99.0)]).is_empty(), "one in ten at least");
    }
}
