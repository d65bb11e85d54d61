//! The outputs of one lane to the outside: those of an actor one after the other, and none waits for another actor's.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Which outputs in memory are handed to the outlet, and which come next.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Handing<A> {
    actors: BTreeMap<A, Waiting>,
    /// The first ones of their actors that are to be handed over.
    free: BTreeSet<u64>,
    /// Those that are.
    handed: BTreeSet<u64>,
}

/// What waits of one actor.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Waiting {
    /// In order; the first one is free, handed over, or being parked.
    numbers: VecDeque<u64>,
    /// Whether the one before was parked.
    unwanted: bool,
}

impl<A: Clone + Ord> Handing<A> {
    pub(super) fn new() -> Self {
        Self { actors: BTreeMap::new(), free: BTreeSet::new(), handed: BTreeSet::new() }
    }

    /// Takes an output in; they come in their order.
    pub(super) fn enter(&mut self, actor: A, number: u64) {
        let waiting = self.actors.entry(actor).or_default();
        assert!(waiting.numbers.back().is_none_or(|last| *last < number), "outputs come out of their order");
        if waiting.numbers.is_empty() {
            self.free.insert(number);
        }
        waiting.numbers.push_back(number);
    }

    /// What is to be handed over now, so that at most `most` are.
    pub(super) fn hand_over(&mut self, most: usize) -> Vec<u64> {
        let mut next = Vec::new();
        while self.handed.len() < most
            && let Some(number) = self.free.pop_first()
        {
            self.handed.insert(number);
            next.push(number);
        }
        next
    }

    /// Whether the outlet may be patient with the next output of `actor`: not if the one before was parked, so that a long
    /// row of such outputs ends soon.
    pub(super) fn is_patient(&self, actor: &A) -> bool {
        self.actors.get(actor).is_none_or(|waiting| !waiting.unwanted)
    }

    /// Takes an output back that was handed over; whether it was.
    pub(super) fn take_back(&mut self, number: u64) -> bool {
        self.handed.remove(&number)
    }

    /// Lets an output be handed over that was taken back.
    pub(super) fn again(&mut self, number: u64) {
        assert!(!self.handed.contains(&number), "an output is handed over twice at once");
        self.free.insert(number);
    }

    /// Is done with the first output of `actor`, which was taken back.
    pub(super) fn done(&mut self, actor: &A, number: u64, unwanted: bool) {
        assert!(!self.handed.contains(&number), "an output is done with that is still handed over");
        let Some(waiting) = self.actors.get_mut(actor) else { return };
        let first = waiting.numbers.pop_front();
        assert_eq!(first, Some(number), "an output has overtaken an earlier one of its actor");
        waiting.unwanted = unwanted;
        match waiting.numbers.front() {
            Some(next) => _ = self.free.insert(*next),
            None => _ = self.actors.remove(actor),
        }
    }
}
