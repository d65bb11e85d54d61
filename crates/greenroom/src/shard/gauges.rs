//! What a shard tells of itself, for whoever looks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use greenroom_world::Timestamp;

use super::shedding::Shed;
use super::stalls::Stalls;
use super::waits::LongTurn;
use crate::here::meter::Meters;
use crate::here::samples::Samples;
use crate::here::tail::Tail;

/// One shard's numbers. Written by the shard alone, on a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Gauges {
    activations: AtomicU64,
    turns: AtomicU64,
    calls: AtomicU64,
    sends_refused: AtomicU64,
    cancelled: AtomicU64,
    busy_nanos: AtomicU64,
    /// When the shard began what it does, in nanoseconds of the world's clock; 0 while it rests.
    began_nanos: AtomicU64,
    long_turns: Mutex<Vec<LongTurn>>,
    shed: Shed,
    spawned: AtomicU64,
    restarts: AtomicU64,
    stalls: Stalls,
    meters: Arc<Meters>,
    samples: Samples,
    tail: Tail,
    /// Saves of states, those that took long, and those that met a conflict.
    saves: [AtomicU64; 3],
}

impl Gauges {
    pub(crate) fn activations(&self) -> u64 {
        self.activations.load(Ordering::Relaxed)
    }

    /// Turns begun since the node started.
    pub(crate) fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }

    /// Calls that turns of this shard wait for.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    pub(crate) fn sends_refused(&self) -> u64 {
        self.sends_refused.load(Ordering::Relaxed)
    }

    /// Calls that never started, as nobody waited for them any more.
    pub(crate) fn cancelled(&self) -> u64 {
        self.cancelled.load(Ordering::Relaxed)
    }

    pub(super) fn count_cancelled(&self) {
        self.cancelled.fetch_add(1, Ordering::Relaxed);
    }

    /// What the shard turns away.
    pub(crate) fn shed(&self) -> &Shed {
        &self.shed
    }

    /// The methods that keep the shard from others.
    pub(crate) fn stalls(&self) -> &Stalls {
        &self.stalls
    }

    /// What is counted of its actors' turns.
    pub(crate) fn meters(&self) -> &Arc<Meters> {
        &self.meters
    }

    /// Turns of them that failed or were slow.
    pub(crate) fn samples(&self) -> &Samples {
        &self.samples
    }

    /// Who follows its turns.
    pub(crate) fn tail(&self) -> &Tail {
        &self.tail
    }

    /// Saves of states, those of them that took over a second, and those that met what somebody else has written.
    pub(crate) fn saves(&self) -> [u64; 3] {
        std::array::from_fn(|at| self.saves[at].load(Ordering::Relaxed))
    }

    /// Counts a save of a state, which took so long.
    pub(crate) fn count_save(&self, took: Duration, conflict: bool) {
        let counts = [true, took > SAVE_LONG, conflict];
        for (count, _) in self.saves.iter().zip(counts).filter(|(_, counts)| *counts) {
            count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    pub(crate) fn busy_nanos(&self) -> u64 {
        self.busy_nanos.load(Ordering::Relaxed)
    }

    /// How long the shard has been in one go, without looking at anything else.
    pub(crate) fn in_one_go(&self, now: Timestamp) -> Duration {
        match self.began_nanos.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            began => now.since(Timestamp::from_nanos(began)),
        }
    }

    /// True once the shard has kept its thread for so long that the node is not to be sent requests.
    pub(crate) fn is_stuck(&self, now: Timestamp) -> bool {
        self.in_one_go(now) >= STUCK_AFTER
    }

    /// Turns that have run for longer than `long_turn`.
    pub(crate) fn long_turns(&self) -> Vec<LongTurn> {
        self.long_turns.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_long_turns(&self, turns: Vec<LongTurn>) {
        *self.long_turns.lock().unwrap_or_else(PoisonError::into_inner) = turns;
    }

    /// Spawned actors.
    pub(crate) fn spawned(&self) -> u64 {
        self.spawned.load(Ordering::Relaxed)
    }

    /// Restarts of spawned actors since the node started.
    pub(crate) fn restarts(&self) -> u64 {
        self.restarts.load(Ordering::Relaxed)
    }

    pub(crate) fn set_spawned(&self, spawned: usize, restarts: u64) {
        self.spawned.store(spawned as u64, Ordering::Relaxed);
        self.restarts.store(restarts, Ordering::Relaxed);
    }

    pub(super) fn set_activations(&self, activations: usize) {
        self.activations.store(activations as u64, Ordering::Relaxed);
    }

    pub(super) fn set_round(&self, turns: u64, calls: usize) {
        self.turns.store(turns, Ordering::Relaxed);
        self.calls.store(calls as u64, Ordering::Relaxed);
    }

    /// The shard begins to look for something to do.
    pub(super) fn begin(&self, now: Timestamp) {
        self.began_nanos.store(now.as_nanos(), Ordering::Relaxed);
    }

    /// It rests, after so long.
    pub(super) fn end(&self, nanos: u64) {
        self.began_nanos.store(0, Ordering::Relaxed);
        self.busy_nanos.store(self.busy_nanos() + nanos, Ordering::Relaxed);
    }

    /// Counts a one-way message that was refused; any thread may.
    pub(crate) fn count_refused_send(&self) {
        self.sends_refused.fetch_add(1, Ordering::Relaxed);
    }
}

/// Time without the end of a round after which a shard is stuck.
pub(crate) const STUCK_AFTER: Duration = Duration::from_secs(5);
/// Time from which on a save is slow.
const SAVE_LONG: Duration = Duration::from_secs(1);
