//! Heavy edges in bounded memory: which pairs of actors send each other most, of so many that they cannot all be counted.
//!
//! A table of ways in sets of eight. A new edge takes over the smallest entry of its set and adds to that one's weight, its own
//! name only with probability w / (w + min): so the expected weight of each edge is what it sent, and that of any sum of edges
//! as well (Ting, SIGMOD '18). Weights have a half-life of 30 s.
//!
//! **Where an edge is.** An actor has a neighbourhood of 16 sets side by side, from the one that its hash names; which of these
//! an edge is in is by the partner's hash. So the edges of one actor are found by reading 3 KiB in a row, not the whole table;
//! a hub keeps its 128 heaviest partners where sets by the actor alone would keep eight; and a hub with thousands of partners
//! crowds out others only in its own 16 sets (0.2 % of 64 k entries), where sets by the pair would let it do so everywhere.
//! What a hub does not keep its partners keep: to each of them the hub is one edge.
//!
//! An edge is of its actor, who is local; both ends keep one of a message between two local actors. No decision may need an edge
//! that is missing.
//!
//! Pure: no clock, no I/O, no randomness. Nothing is allocated for a sample.

pub mod decay;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use self::decay::Decay;
pub use self::decay::HALF_LIFE;
use crate::mix::mix;
use crate::time::Timestamp;
use crate::ways::{Entry, Ways};

/// What one actor and a partner of it sent each other.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Edge {
    /// The hash of the actor whose edge it is.
    pub actor: u64,
    /// The hash of the other one.
    pub partner: u64,
    /// Messages, with a half-life of [`HALF_LIFE`]: an estimate that is right in the mean.
    pub weight: f64,
}

impl Edge {
    /// Messages a second, if they come evenly.
    pub fn a_second(&self) -> f64 {
        decay::a_second(self.weight)
    }
}

/// The heavy edges of one shard's actors.
#[derive(Clone, Debug)]
pub struct HeavyEdges {
    /// Weights are those at the origin of `decay`; an entry without weight is free.
    entries: Ways<Edge>,
    decay: Decay,
    rules: Rules,
}

impl Entry for Edge {
    fn is_free(&self) -> bool {
        self.weight <= 0.0
    }
}

/// Which rules are in force; all of them, unless a test says otherwise.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rules {
    /// A new edge takes the smallest one's name by the share of its weight only.
    pub names_by_share: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self { names_by_share: true }
    }
}

impl HeavyEdges {
    /// A table without edges, with room for `capacity` of them: the next power of two within [`CAPACITY_MIN`] and
    /// [`CAPACITY_MAX`], 24 bytes each, all allocated here.
    pub fn new(capacity: usize, now: Timestamp) -> Self {
        Self::with_rules(capacity, now, Rules::default())
    }

    /// The same, under other rules.
    #[doc(hidden)]
    pub fn with_rules(capacity: usize, now: Timestamp, rules: Rules) -> Self {
        let capacity = capacity.clamp(CAPACITY_MIN, CAPACITY_MAX).next_power_of_two();
        Self { entries: Ways::new(capacity), decay: Decay::new(now), rules }
    }

    /// How many edges there is room for.
    pub fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    /// Makes room for twice as many, if that is not more than [`CAPACITY_MAX`]. Goes through the whole table.
    pub fn grow(&mut self) {
        if self.capacity() < CAPACITY_MAX {
            self.entries = self.entries.grown(|edge, sets| set_of(edge.actor, edge.partner, sets));
        }
    }

    /// How many edges are kept.
    pub fn len(&self) -> usize {
        self.kept().count()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.kept().next().is_none()
    }

    /// Counts `weight` messages between `actor` and `partner`. `draw` is a random word of its own.
    ///
    /// # Panics
    /// If `weight` is not a positive number.
    pub fn add(&mut self, actor: u64, partner: u64, weight: f64, now: Timestamp, draw: u64) {
        assert!(weight > 0.0 && weight.is_finite(), "an edge without weight is counted: {weight}");
        self.renew(now);
        let weight = weight * self.decay.factor(now);
        let set = self.set_of(actor, partner);
        let entries = self.entries.set_to_fill(set);
        let is_it = |edge: &Edge| edge.weight > 0.0 && edge.actor == actor && edge.partner == partner;
        if let Some(known) = entries.iter_mut().find(|edge| is_it(edge)) {
            known.weight += weight;
            return;
        }
        let smallest = entries.iter_mut().min_by(|a, b| a.weight.total_cmp(&b.weight)).expect("a set has ways");
        smallest.weight += weight;
        if !self.rules.names_by_share || part(draw) * smallest.weight < weight {
            (smallest.actor, smallest.partner) = (actor, partner);
        }
    }

    /// What is known that the two sent each other, as an edge of `actor`; zero if that is not kept.
    pub fn weight(&self, actor: u64, partner: u64, now: Timestamp) -> f64 {
        let entries = self.entries.set(self.set_of(actor, partner));
        let known = entries.iter().find(|edge| edge.actor == actor && edge.partner == partner);
        known.map_or(0.0, |edge| edge.weight / self.decay.factor(now))
    }

    /// The edges of `actor` that are kept, at most 128, the heaviest first.
    pub fn partners(&self, actor: u64, now: Timestamp) -> Vec<Edge> {
        let mut found: Vec<Edge> = self
            .neighbourhood(actor)
            .flat_map(|set| self.entries.set(set))
            .filter(|edge| edge.weight > 0.0 && edge.actor == actor)
            .map(|edge| self.at(edge, now))
            .collect();
        heaviest_first(&mut found);
        found
    }

    /// The `n` heaviest edges, the heaviest first. Reads the whole table.
    pub fn heaviest(&self, n: usize, now: Timestamp) -> Vec<Edge> {
        let mut found: Vec<Edge> = self.all(now).collect();
        if n < found.len() {
            // To sort what is left out would take longer than all else.
            found.select_nth_unstable_by(n, heavier_first);
            found.truncate(n);
        }
        heaviest_first(&mut found);
        found
    }

    /// All edges that are kept, in no order. Reads the whole table.
    pub fn all(&self, now: Timestamp) -> impl Iterator<Item = Edge> {
        let factor = self.decay.factor(now);
        self.kept().map(move |edge| Edge { weight: edge.weight / factor, ..*edge })
    }

    /// Forgets the edges of `actor`, which is not here any more. Others' edges to it stay: they are right wherever it is, and
    /// fade if it is nowhere.
    pub fn forget(&mut self, actor: u64) {
        for set in self.neighbourhood(actor) {
            for edge in self.entries.set_mut(set).iter_mut().filter(|edge| edge.actor == actor) {
                *edge = Edge::default();
            }
        }
    }

    /// Adds all edges of `other`, as if they had been counted here. `draw` is a random word of its own.
    pub fn merge(&mut self, other: &Self, now: Timestamp, draw: u64) {
        for (number, edge) in (0_u64..).zip(other.kept()) {
            let Edge { actor, partner, weight } = other.at(edge, now);
            if weight > 0.0 {
                self.add(actor, partner, weight, now, mix(draw.wrapping_add(number)));
            }
        }
    }

    fn kept(&self) -> impl Iterator<Item = &Edge> {
        self.entries.entries()
    }

    /// An entry, with its weight as of now.
    fn at(&self, entry: &Edge, now: Timestamp) -> Edge {
        Edge { weight: entry.weight / self.decay.factor(now), ..*entry }
    }

    fn set_of(&self, actor: u64, partner: u64) -> usize {
        set_of(actor, partner, self.entries.sets())
    }

    fn neighbourhood(&self, actor: u64) -> impl Iterator<Item = usize> + use<> {
        let sets = self.entries.sets();
        (0..NEIGHBOURHOOD).map(move |step| nth_set(actor, step, sets))
    }

    /// Reads and writes the whole table about once in half an hour; what has faded is free then.
    fn renew(&mut self, now: Timestamp) {
        let Some(factor) = self.decay.renew(now) else { return };
        self.entries.visit(0..self.entries.sets(), |edge| {
            edge.weight *= factor;
            if edge.weight < FADED {
                *edge = Edge::default();
            }
        });
    }
}

fn set_of(actor: u64, partner: u64, sets: usize) -> usize {
    nth_set(actor, mix(partner) as usize % NEIGHBOURHOOD, sets)
}

fn nth_set(actor: u64, step: usize, sets: usize) -> usize {
    (mix(actor) as usize).wrapping_add(step) & (sets - 1)
}

fn heaviest_first(edges: &mut [Edge]) {
    edges.sort_unstable_by(heavier_first);
}

fn heavier_first(a: &Edge, b: &Edge) -> Ordering {
    b.weight.total_cmp(&a.weight).then((a.actor, a.partner).cmp(&(b.actor, b.partner)))
}

/// A random word as a number from 0 to below 1.
pub(crate) fn part(draw: u64) -> f64 {
    (draw >> 11) as f64 / (1_u64 << 53) as f64
}

/// Edges at least that a table has room for.
pub const CAPACITY_MIN: usize = 8 * 1024;
/// Edges at most that a table has room for.
pub const CAPACITY_MAX: usize = 64 * 1024;
/// Sets side by side that the edges of one actor are in.
const NEIGHBOURHOOD: usize = 16;
/// Messages below which an edge is none, when the table is gone through.
const FADED: f64 = 1e-6;
