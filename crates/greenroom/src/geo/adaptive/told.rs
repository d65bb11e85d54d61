//! How many instances an adaptive actor has and why, in words.

use greenroom_protocols::adaptive::{Known, Mode, Operations, Why};
use greenroom_protocols::gsi::ClusterId;

use super::report::Adaptive;
use crate::actor::key::ActorId;
use crate::cluster::directory::Entry;
use crate::geo::Geo;

impl Geo {
    /// How many instances an actor has and why; `None` if its kind is not adaptive.
    pub(crate) fn adaptive(&self, id: &ActorId) -> Option<Adaptive> {
        if !self.is_adaptive(id.kind) {
            return None;
        }
        let key = Entry::new(id.clone());
        let list = self.clusters();
        let name = |id: ClusterId| list.name(id).map_or_else(|| format!("cluster {}", id.0), str::to_owned);
        let known = self.modes().known(&key);
        let said = &self.config().adaptive;
        let window = said.window.as_secs_f64();
        let (ratio, gain) = (said.ratio, said.gain);
        let when =
            format!("{ratio} times as much, and {gain} round trips more, in what counts of windows of {window} s");
        let (instances, home, back) = match known.mode {
            Mode::Single { home } => {
                let back =
                    format!("one in each cluster, or another home for the one, when it costs {when} where it is");
                ("single", home.map(name), back)
            }
            Mode::PerCluster => ("per_cluster", None, format!("one instance, when one in each cluster costs {when}")),
        };
        Some(Adaptive {
            instances: instances.to_owned(),
            home,
            epoch: known.epoch.number,
            why: reason(&known, name),
            at_unix_seconds: known.why.map(|why| why.at.as_secs()),
            back,
            decider: name(self.decider(&key)),
        })
    }
}

fn reason(known: &Known, name: impl Fn(ClusterId) -> String) -> String {
    let Some(Why { counted, single, per_cluster, elsewhere, .. }) = &known.why else {
        return "it has never switched: actors begin with one instance, where they are called first".to_owned();
    };
    let each: Vec<String> =
        counted.iter().map(|(cluster, asked)| format!("{}: {}", name(*cluster), counts(asked))).collect();
    let counted = each.join("; ");
    match elsewhere {
        Some(there) => format!(
            "{counted}; that costs {single} round trips with the one instance where it was, {there} where it is to be, \
             {per_cluster} with one in each cluster"
        ),
        None => {
            format!(
                "{counted}; that costs {single} round trips with one instance, {per_cluster} with one in each cluster"
            )
        }
    }
}

fn counts(asked: &Operations) -> String {
    let Operations { reads, updates, confirms, refreshes } = asked;
    let parts = [(reads, "reads"), (updates, "updates"), (confirms, "of them waited for"), (refreshes, "fresh reads")];
    let said: Vec<String> =
        parts.iter().filter(|(count, _)| **count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if said.is_empty() { "nothing".to_owned() } else { said.join(", ") }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use greenroom_protocols::adaptive::Trips;

    use super::*;

    #[test]
    fn the_reason_names_what_was_counted_and_what_it_costs() {
        let counted = BTreeMap::from([
            (ClusterId(1), Operations { reads: 300, updates: 12, confirms: 12, refreshes: 0 }),
            (ClusterId(2), Operations::default()),
        ]);
        let why = Why { counted, single: Trips(312_000), per_cluster: Trips(6_250), ..Why::default() };
        let known = Known { why: Some(why), ..Known::default() };
        let said = reason(&known, |id| ["eu", "us"][usize::from(id.0) - 1].to_owned());
        assert_eq!(
            said,
            "eu: 300 reads, 12 updates, 12 of them waited for; us: nothing; that costs 312.0 round trips with one instance, 6.2 \
             with one in each cluster"
        );
        assert!(reason(&Known::default(), |_| String::new()).contains("never switched"));
    }
}
