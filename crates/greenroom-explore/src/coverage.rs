//! How much was seen: schedules that differ, how often another one still turns up, and which turns came behind which.

use std::collections::{BTreeMap, BTreeSet};

use crate::numbers::ByNumber;

/// A turn that began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Began {
    /// The actor, as a hash.
    pub(crate) at: u64,
    /// Tells it from all others of all schedules.
    pub(crate) number: u64,
}

/// What all schedules together have shown.
#[derive(Default)]
pub(crate) struct Coverage {
    /// How often each trace came.
    traces: ByNumber<u32>,
    /// What turns are called, by their numbers: the kind and the method.
    names: ByNumber<(String, String)>,
    /// Methods that began at each actor.
    at: BTreeMap<u64, BTreeSet<(String, String)>>,
    /// Methods of one kind, one right behind the other at one actor.
    pairs: BTreeSet<(String, String, String)>,
}

/// How much that is.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Seen {
    pub(crate) traces: u64,
    /// Traces that came once: so many of all schedules showed something that no other has shown.
    pub(crate) once: u64,
    /// Pairs of two methods of one actor that were seen in this order.
    pub(crate) pairs: u64,
    /// Those that were not, although both came.
    pub(crate) never: Vec<String>,
}

impl Coverage {
    /// Learns what turns are called: `account/ada.set<teller/1`.
    pub(crate) fn name(&mut self, number: u64, step: &str) {
        let turn = step.split('<').next().unwrap_or_default();
        if let Some((actor, method)) = turn.rsplit_once('.')
            && self.names.len() < NAMES_LEN_MAX
        {
            let kind = actor.split('/').next().unwrap_or_default();
            self.names.insert(number, (kind.to_owned(), method.to_owned()));
        }
    }

    /// Takes in a schedule: its trace, and the turns that began in it, in their order.
    pub(crate) fn add(&mut self, trace: u64, began: &[Began]) {
        let times = self.traces.entry(trace).or_default();
        *times = times.saturating_add(1);
        if *times > 1 {
            return;
        }
        let mut last: ByNumber<&(String, String)> = ByNumber::default();
        for Began { at, number } in began {
            let Some(turn) = self.names.get(number) else { continue };
            let seen = self.at.entry(*at).or_default();
            if !seen.contains(turn) {
                seen.insert(turn.clone());
            }
            if let Some((_, before)) = last.insert(*at, turn)
                && *before != turn.1
            {
                self.pairs.insert((turn.0.clone(), before.clone(), turn.1.clone()));
            }
        }
    }

    /// Takes in what others have shown.
    pub(crate) fn add_all(&mut self, other: Self) {
        for (trace, times) in other.traces {
            let known = self.traces.entry(trace).or_default();
            *known = known.saturating_add(times);
        }
        self.names.extend(other.names);
        for (actor, turns) in other.at {
            self.at.entry(actor).or_default().extend(turns);
        }
        self.pairs.extend(other.pairs);
    }

    /// How much was seen.
    pub(crate) fn seen(&self) -> Seen {
        let mut never = BTreeSet::new();
        for turns in self.at.values() {
            for (kind, first) in turns {
                for (_, then) in turns.iter().filter(|(_, then)| then != first) {
                    if !self.pairs.contains(&(kind.clone(), first.clone(), then.clone())) {
                        never.insert(format!("{kind}.{first} before {kind}.{then}"));
                    }
                }
            }
        }
        Seen {
            traces: self.traces.len() as u64,
            once: self.traces.values().filter(|times| **times == 1).count() as u64,
            pairs: self.pairs.len() as u64,
            never: never.into_iter().collect(),
        }
    }
}

/// Turns whose names are kept; those beyond are in no pair.
const NAMES_LEN_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_that_never_came_are_told() {
        let mut coverage = Coverage::default();
        for (number, step) in
            [(1, "order/7.created<client 1"), (2, "order/7.paid<client 2"), (3, "order/8.paid<client 2")]
        {
            coverage.name(number, step);
        }
        let began = |numbers: &[(u64, u64)]| -> Vec<Began> {
            numbers.iter().map(|(at, number)| Began { at: *at, number: *number }).collect()
        };
        coverage.add(1, &began(&[(7, 1), (8, 3), (7, 2)]));
        coverage.add(1, &began(&[(7, 1), (8, 3), (7, 2)]));
        coverage.add(2, &began(&[(8, 3), (7, 1), (7, 2)]));
        let seen = coverage.seen();
        assert_eq!((seen.traces, seen.once, seen.pairs), (2, 1, 1));
        assert_eq!(seen.never, ["order.paid before order.created"]);
        coverage.add(3, &began(&[(7, 2), (7, 1)]));
        assert_eq!(coverage.seen().never, [] as [&str; 0]);
    }
}
