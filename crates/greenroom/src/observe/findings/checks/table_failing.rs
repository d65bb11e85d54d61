//! The membership table's store does not answer.

use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "table-failing",
    holds: Duration::from_secs(2),
    page: "#/nodes",
    remedy: "See whether the engine runs and this node reaches it: without it the lease runs out, and then no turn starts here.",
    look,
};

fn look(facts: &Facts, out: &mut Vec<Found>) {
    if let Some(why) = &facts.table_failing {
        let title = format!("The table's store fails at {}", facts.node);
        out.push(Found::new(Level::Bad, Subject::node(&*facts.node), title, &**why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::checks::titles;

    #[test]
    fn a_store_that_fails_is_found_and_one_that_answers_is_not() {
        let failing = Facts { node: "a".to_owned(), table_failing: Some("refused".to_owned()), ..Facts::default() };
        assert_eq!(titles(&CHECK, &failing), ["The table's store fails at a"]);
        assert!(titles(&CHECK, &Facts { table_failing: None, ..failing }).is_empty());
    }
}
