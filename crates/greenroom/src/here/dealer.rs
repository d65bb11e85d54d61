//! Which shard gets what is new to a node.

use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

use crate::shard::Gauges;

/// Deals out the shards of a node.
pub(super) struct Dealer {
    turn: AtomicUsize,
    /// The shards by which messages from outside come in, by the actors' hashes.
    entrances: Box<[AtomicU16]>,
}

impl Default for Dealer {
    fn default() -> Self {
        Self { turn: AtomicUsize::new(0), entrances: (0..ENTRANCES).map(|_| AtomicU16::new(NO_SHARD)).collect() }
    }
}

impl Dealer {
    /// The one of `shards` whose turn it is.
    pub(super) fn deal(&self, shards: usize) -> u16 {
        (self.turn.fetch_add(1, Ordering::Relaxed) % shards) as u16
    }

    /// The shard for a new activation: `near`, unless the one whose turn it is is much emptier.
    pub(super) fn choose(&self, near: u16, gauges: &[Gauges]) -> u16 {
        let next = self.deal(gauges.len());
        let activations = |shard: u16| gauges[usize::from(shard)].activations();
        let (here, there) = (activations(near), activations(next));
        if here > there + there / 4 + IMBALANCE { next } else { near }
    }

    /// The shard by which messages from outside for actors of this hash come in: one for each actor, so that they stay in
    /// order, and each shard in its turn, so that a few busy actors do not share one by chance.
    pub(super) fn entrance(&self, hash: u64, shards: usize) -> u16 {
        let entrance = &self.entrances[hash as usize % ENTRANCES];
        let known = entrance.load(Ordering::Relaxed);
        if known != NO_SHARD {
            return known;
        }
        let dealt = self.deal(shards);
        let taken = entrance.compare_exchange(NO_SHARD, dealt, Ordering::Relaxed, Ordering::Relaxed);
        taken.map_or_else(|known| known, |_| dealt)
    }
}

/// Activations by which a shard may be ahead of another before new ones go there.
const IMBALANCE: u64 = 64;
/// Actors that share an entrance share the shard that it leads to: with so many, hardly any two busy ones do.
const ENTRANCES: usize = 4096;
const NO_SHARD: u16 = u16::MAX;
