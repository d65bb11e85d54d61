//! Actors may be there twice over the clusters, or were.

use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "doubtful",
    holds: Duration::from_secs(3),
    page: "#/nodes",
    remedy: "Heal the link between the clusters: they then agree on one instance of each by themselves.",
    look,
};

fn look(facts: &Facts, out: &mut Vec<Found>) {
    if facts.doubtful >= 1.0 {
        let title = format!("{:.0} actors may have a second instance in another cluster", facts.doubtful);
        let text = "They were activated while not all clusters answered.";
        let found = Found::new(Level::Warn, Subject::node(&*facts.node), title, text);
        out.push(found.with("doubtful", facts.doubtful.round(), ""));
    } else if facts.duplicates >= 1.0 {
        let title = format!("{:.0} actors had a second instance in another cluster", facts.duplicates);
        let text = "One instance of each has ended; what a duplicate had told confirmed may be lost.";
        let found = Found::new(Level::Warn, Subject::node(&*facts.node), title, text);
        out.push(found.with("duplicates", facts.duplicates.round(), ""));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::checks::titles;

    #[test]
    fn actors_that_may_be_two_and_duplicates_of_late_are_found() {
        let doubtful = Facts { doubtful: 3.2, ..Facts::default() };
        assert_eq!(titles(&CHECK, &doubtful), ["3 actors may have a second instance in another cluster"]);
        let duplicates = Facts { duplicates: 2.2, ..Facts::default() };
        assert_eq!(titles(&CHECK, &duplicates), ["2 actors had a second instance in another cluster"]);
    }

    #[test]
    fn duplicates_of_long_ago_are_not() {
        assert!(titles(&CHECK, &Facts { doubtful: 0.9, duplicates: 0.9, ..Facts::default() }).is_empty());
    }
}
