//! The clock of another cluster is far from this node's.

use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "clocks-apart",
    holds: Duration::from_secs(3),
    page: "#/nodes",
    remedy: "Set the clocks of both by NTP: reminders, certificates and tokens go wrong.",
    look,
};

fn look(facts: &Facts, out: &mut Vec<Found>) {
    for cluster in &facts.clusters {
        let Some(ahead) = cluster.clock_ahead_s else { continue };
        let side = if ahead > 0 { "ahead" } else { "behind" };
        let apart = ahead.unsigned_abs();
        let title = format!("The clock of cluster {} is {apart} s {side}", cluster.name);
        let found =
            Found::new(Level::Warn, Subject::cluster(&*cluster.name), title, "More than a minute is no accident.");
        out.push(found.with("ahead", ahead as f64, "s"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::Cluster;
    use crate::observe::findings::checks::titles;

    fn ahead(clock_ahead_s: Option<i64>) -> Vec<String> {
        let cluster = Cluster { name: "eu".to_owned(), answers: true, clock_ahead_s, ..Cluster::default() };
        titles(&CHECK, &Facts { clusters: vec![cluster], ..Facts::default() })
    }

    #[test]
    fn a_clock_that_is_far_off_is_found() {
        assert_eq!(ahead(Some(-75)), ["The clock of cluster eu is 75 s behind"]);
    }

    #[test]
    fn one_that_is_near_is_not() {
        assert!(ahead(None).is_empty());
    }
}
