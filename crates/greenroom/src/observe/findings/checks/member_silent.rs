//! A node does not answer, or is dead.

use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found, Standing};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "member-silent",
    holds: Duration::from_secs(3),
    page: "#/nodes",
    remedy: "Start it again, or see why it cannot be reached; its actors are activated on the other nodes.",
    look,
};

fn look(facts: &Facts, out: &mut Vec<Found>) {
    let back = |name: &str| {
        facts.members.iter().any(|member| {
            member.name == name && matches!(member.standing, Standing::Active | Standing::Draining | Standing::Left)
        })
    };
    for member in &facts.members {
        let name = &member.name;
        let (title, text, for_long) = match (member.standing, member.silent_for) {
            // Who was started again under its name is there. The others have waited before they declared it dead.
            (Standing::Dead, _) if !back(name) => {
                (format!("{name} is dead"), member.why.clone().unwrap_or_default(), CHECK.holds)
            }
            (Standing::Active | Standing::Draining, Some(silent)) => {
                let text = format!("It has not answered {} for {:.0} s.", facts.node, silent.as_secs_f64());
                (format!("{name} does not answer"), text, silent)
            }
            _ => continue,
        };
        out.push(Found { for_long, ..Found::new(Level::Bad, Subject::node(&**name), title, text) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::Member;
    use crate::observe::findings::checks::titles;

    fn members(members: &[(Standing, Option<u64>)]) -> Vec<String> {
        let member = |(standing, silent): &(Standing, Option<u64>)| Member {
            name: "b".to_owned(),
            standing: *standing,
            silent_for: silent.map(Duration::from_secs),
            ..Member::default()
        };
        titles(&CHECK, &Facts { members: members.iter().map(member).collect(), ..Facts::default() })
    }

    #[test]
    fn a_node_that_is_dead_or_silent_is_found() {
        assert_eq!(members(&[(Standing::Dead, None)]), ["b is dead"]);
        assert_eq!(members(&[(Standing::Active, Some(2))]), ["b does not answer"]);
    }

    #[test]
    fn one_that_left_or_was_started_again_is_not() {
        for fine in [&[(Standing::Left, None)][..], &[(Standing::Dead, None), (Standing::Active, None)]] {
            assert!(members(fine).is_empty(), "{fine:?}");
        }
    }
}
