//! One life of a node: from its start to its crash.

use std::sync::atomic::{AtomicBool, Ordering};

/// Marks shared by all that belongs to one life of a node.
#[derive(Debug)]
pub(crate) struct Incarnation {
    pub(crate) machine: usize,
    pub(crate) number: u32,
    dead: AtomicBool,
    paused: AtomicBool,
}

impl Incarnation {
    pub(crate) fn new(machine: usize, number: u32) -> Self {
        Self { machine, number, dead: AtomicBool::new(false), paused: AtomicBool::new(false) }
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed)
    }

    pub(crate) fn die(&self) {
        self.dead.store(true, Ordering::Relaxed);
    }

    /// True if this changed anything.
    pub(crate) fn pause(&self, paused: bool) -> bool {
        self.paused.swap(paused, Ordering::Relaxed) != paused
    }
}
