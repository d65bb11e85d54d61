//! Another cluster does not answer.

use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "cluster-silent",
    holds: Duration::from_secs(3),
    page: "#/nodes",
    remedy: "See whether its gateways run and the network between lets them through; `greenroom clusters status` says what each node sees.",
    look,
};

fn look(facts: &Facts, out: &mut Vec<Found>) {
    for cluster in facts.clusters.iter().filter(|cluster| !cluster.answers) {
        let (level, title, usually) = match cluster.joining {
            true => {
                let title = format!("Cluster {} joins, and does not answer yet", cluster.name);
                (Level::Hint, title, "It owns nothing, and hinders nobody.")
            }
            false => {
                let title = format!("Cluster {} does not answer", cluster.name);
                (Level::Bad, title, "Actors that it owns cannot be called from here.")
            }
        };
        let text = cluster.trouble.as_deref().unwrap_or(usually);
        out.push(Found::new(level, Subject::cluster(&*cluster.name), title, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::Cluster;
    use crate::observe::findings::checks::titles;

    fn cluster(answers: bool) -> Vec<String> {
        let cluster = Cluster { name: "eu".to_owned(), answers, ..Cluster::default() };
        titles(&CHECK, &Facts { clusters: vec![cluster], ..Facts::default() })
    }

    #[test]
    fn a_cluster_that_does_not_answer_is_found() {
        assert_eq!(cluster(false), ["Cluster eu does not answer"]);
    }

    #[test]
    fn one_that_joins_is_only_a_hint() {
        let cluster = Cluster { name: "asia".to_owned(), joining: true, ..Cluster::default() };
        let mut found = Vec::new();
        look(&Facts { clusters: vec![cluster], ..Facts::default() }, &mut found);
        assert_eq!(found.iter().map(|found| found.level).collect::<Vec<_>>(), [Level::Hint]);
        assert!(found[0].title.contains("joins"));
    }

    #[test]
    fn one_that_answers_is_not() {
        assert!(cluster(true).is_empty());
    }
}
