//! Who waits for whom, and who by that waits for itself. Pure: a graph in, its cycles out.

use std::collections::{BTreeMap, BTreeSet};

/// Who waits for whom: from the one that waits to those that it waits for.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct WaitFor {
    edges: BTreeMap<String, BTreeSet<String>>,
}

impl WaitFor {
    /// Notes that `waiter` waits for `other`.
    pub fn insert(&mut self, waiter: impl Into<String>, other: impl Into<String>) {
        self.edges.entry(waiter.into()).or_default().insert(other.into());
    }

    /// Whom `waiter` waits for.
    pub fn of(&self, waiter: &str) -> impl Iterator<Item = &str> {
        self.edges.get(waiter).into_iter().flatten().map(String::as_str)
    }

    /// The deadlocks: of each set of those that all wait for each other, one way around, that begins with the least name and
    /// ends before it comes back.
    pub fn cycles(&self) -> Vec<Vec<String>> {
        let mut found = Vec::new();
        let mut told = BTreeSet::new();
        for start in self.edges.keys() {
            if told.contains(start.as_str()) {
                continue;
            }
            if let Some(cycle) = self.way_back(start) {
                told.extend(cycle.iter().copied());
                found.push(cycle.into_iter().map(str::to_owned).collect());
            }
        }
        found
    }

    /// The shortest way from `start` back to it.
    fn way_back<'a>(&'a self, start: &'a str) -> Option<Vec<&'a str>> {
        let mut from: BTreeMap<&str, &str> = BTreeMap::new();
        let mut next = std::collections::VecDeque::from([start]);
        while let Some(at) = next.pop_front() {
            for other in self.of(at) {
                if other == start {
                    let mut way = vec![at];
                    while let Some(before) = from.get(way[way.len() - 1]).copied() {
                        way.push(before);
                    }
                    way.reverse();
                    return Some(way);
                }
                if !from.contains_key(other) && other != start {
                    from.insert(other, at);
                    next.push_back(other);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles(edges: &[(&str, &str)]) -> Vec<Vec<String>> {
        let mut graph = WaitFor::default();
        edges.iter().for_each(|(waiter, other)| graph.insert(*waiter, *other));
        graph.cycles()
    }

    #[test]
    fn a_chain_is_no_deadlock() {
        assert!(cycles(&[("a", "b"), ("b", "c"), ("a", "c")]).is_empty());
    }

    #[test]
    fn each_deadlock_is_told_once_from_its_least_name_on() {
        let found = cycles(&[("c", "a"), ("a", "b"), ("b", "c"), ("d", "a"), ("x", "y"), ("y", "x"), ("s", "s")]);
        assert_eq!(found, [vec!["a", "b", "c"], vec!["s"], vec!["x", "y"]]);
    }
}
