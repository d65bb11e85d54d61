//! A node joins for too long.

use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found, Standing};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "member-joining",
    holds: Duration::from_secs(30),
    page: "#/nodes",
    remedy: "All nodes must reach its address and it theirs: see `advertise`, ports and certificates; its log says whom it waits for.",
    look,
};

fn look(facts: &Facts, out: &mut Vec<Found>) {
    for member in facts.members.iter().filter(|member| member.standing == Standing::Joining) {
        let title = format!("{} joins, and does not get in", member.name);
        let text = "A node is active once all others have reached it.";
        out.push(Found::new(Level::Warn, Subject::node(&*member.name), title, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::Member;
    use crate::observe::findings::checks::titles;

    fn member(standing: Standing) -> Vec<String> {
        let member = Member { name: "b".to_owned(), standing, ..Member::default() };
        titles(&CHECK, &Facts { members: vec![member], ..Facts::default() })
    }

    #[test]
    fn a_node_that_joins_is_found() {
        assert_eq!(member(Standing::Joining), ["b joins, and does not get in"]);
    }

    #[test]
    fn one_that_is_in_or_leaves_is_not() {
        for standing in [Standing::Active, Standing::Draining, Standing::Left, Standing::Dead] {
            assert!(member(standing).is_empty(), "{standing:?}");
        }
    }
}
