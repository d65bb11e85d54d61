//! Memory is patience: how many messages an actor remembers is how long it takes to wish, and moves that do not pay double it.

use std::time::Duration;

use super::{KindId, Level};

/// What a move costs, in messages: about 0.9 µs of CPU, what one to another node costs more than one on the same shard.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Cost(pub f32);

impl Cost {
    /// That of an actor that carries so many bytes: 16 + bytes / 4 KiB. What its activation takes is of its kind.
    pub fn of(bytes: u64) -> Self {
        Self((f64::from(BETWEEN_NODES.0) + bytes as f64 / BYTES_A_MESSAGE) as f32)
    }

    /// That of a move at this level.
    pub(super) fn at(self, level: Level) -> Self {
        match level {
            Level::Shards => BETWEEN_SHARDS,
            Level::Nodes => self,
        }
    }
}

impl Default for Cost {
    /// Of a small actor whose activation loads nothing.
    fn default() -> Self {
        BETWEEN_NODES
    }
}

/// What all actors of each kind have learnt.
#[derive(Clone, Debug, Default)]
pub(super) struct Kinds(Vec<Kind>);

#[derive(Clone, Copy, Debug)]
struct Kind {
    /// Of what its actors carry.
    cost: Cost,
    /// Messages that their activation costs where they arrive.
    loading: f32,
    /// The mean of the logarithms of its actors' memories.
    ln_memory: f32,
}

impl Kinds {
    pub(super) fn cost(&self, kind: KindId) -> Cost {
        self.0.get(usize::from(kind.0)).map_or(Cost::default(), |known| known.cost)
    }

    pub(super) fn set_cost(&mut self, kind: KindId, cost: Cost) {
        self.entry(kind).cost = cost;
    }

    pub(super) fn set_loading(&mut self, kind: KindId, activation: Duration) {
        self.entry(kind).loading = (activation.as_secs_f64() / MESSAGE.as_secs_f64()) as f32;
    }

    /// Messages that the activation of an actor of this kind costs.
    pub(super) fn loading(&self, kind: KindId) -> f32 {
        self.0.get(usize::from(kind.0)).map_or(0.0, |known| known.loading)
    }

    /// What a move of an actor of this kind costs that carries so much.
    pub(super) fn price(&self, kind: KindId, carried: Cost) -> Cost {
        Cost(carried.0 + self.loading(kind))
    }

    /// What an actor of this kind begins with.
    pub(super) fn memory(&self, kind: KindId, carried: Cost) -> f32 {
        let cost = self.price(kind, carried);
        bounded(self.0.get(usize::from(kind.0)).map_or(MEMORY_MIN, |known| known.ln_memory.exp()), cost)
    }

    /// The memory of an actor after a move that has paid, or has not, of which its kind learns.
    pub(super) fn judged(&mut self, kind: KindId, cost: Cost, memory: f32, paid: bool) -> f32 {
        let memory = bounded(if paid { memory / 2.0 } else { memory * 2.0 }, cost);
        let known = self.entry(kind);
        known.ln_memory += (memory.ln() - known.ln_memory) * LEARNT;
        memory
    }

    fn entry(&mut self, KindId(kind): KindId) -> &mut Kind {
        let index = usize::from(kind);
        if self.0.len() <= index {
            self.0.resize(index + 1, Kind { cost: Cost::default(), loading: 0.0, ln_memory: MEMORY_MIN.ln() });
        }
        &mut self.0[index]
    }
}

/// A memory within its bounds; what is none becomes the least.
pub(super) fn bounded(memory: f32, Cost(cost): Cost) -> f32 {
    memory.max(MEMORY_MIN).max(cost / 4.0).min(MEMORY_MAX)
}

/// Messages that an actor remembers at least; more if a move costs more than 16 messages.
pub const MEMORY_MIN: f32 = 4.0;
/// Messages that an actor remembers at most.
pub const MEMORY_MAX: f32 = 1024.0;
/// Of a move between nodes, of an actor that carries nothing: 15-20 µs of CPU on both together.
const BETWEEN_NODES: Cost = Cost(16.0);
const BETWEEN_SHARDS: Cost = Cost(3.0);
const MESSAGE: Duration = Duration::from_nanos(900);
const BYTES_A_MESSAGE: f64 = 4096.0;
/// How far a kind's mean goes toward what one of its actors has learnt.
const LEARNT: f32 = 0.01;
