//! Crashes at a chosen moment of what a node does: its n-th message, its n-th write.

use std::time::Duration;

use crate::frame::Told;
use crate::shared::{Core, lock};
use crate::sim::Sim;
use crate::trace::Happening;

/// On which side of an act a crash falls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Edge {
    /// Nothing of it is done.
    Before,
    /// It is done, and the node that did it has not heard of that.
    After,
}

/// Waits for the n-th act of a node.
#[derive(Clone, Debug)]
pub(crate) struct Trap {
    pub(crate) node: String,
    pub(crate) edge: Edge,
    /// Acts that are still to come, the last one included.
    pub(crate) left: u64,
}

impl Trap {
    /// # Panics
    /// If `nth` is 0.
    pub(crate) fn new(node: &str, edge: Edge, nth: u64) -> Self {
        assert!(nth > 0, "acts are counted from 1: the first one is number 1, not 0");
        Self { node: node.to_owned(), edge, left: nth }
    }
}

/// Counts an act at the traps that wait for it; true if one of them springs, which is then gone.
pub(crate) fn springs(traps: &mut Vec<Trap>, node: &str, edge: Edge) -> bool {
    let mut sprung = false;
    traps.retain_mut(|trap| {
        if trap.node != node || trap.edge != edge {
            return true;
        }
        trap.left -= 1;
        sprung |= trap.left == 0;
        trap.left > 0
    });
    sprung
}

impl Sim {
    /// Crashes the node called `node` at its `nth` message to another node from now on, counted from 1: before, it never
    /// leaves; after, it has just arrived. What is a message the [narrator](crate::Builder::narrator) says; without one, every
    /// frame is.
    ///
    /// # Panics
    /// If `nth` is 0.
    pub fn crash_at_message(&self, node: &str, edge: Edge, nth: u64) {
        self.shared.with(|core, _| core.traps.push(Trap::new(node, edge, nth)));
    }

    /// Crashes a living node from within what it does itself: its tasks go when the one that runs has yielded.
    pub(crate) fn crash_soon(&self, node: &str, why: &str) {
        self.shared.with(|core, now| core.crash_soon(now, node, why));
    }

    /// Which life of the node called `node` this is, as long as it lasts; `Some(0)` for one that is no machine of the
    /// simulation.
    pub(crate) fn life(&self, node: &str) -> Option<u32> {
        let core = lock(&self.shared.core);
        let Some(number) = core.numbers.get(node) else { return Some(0) };
        let machine = &core.machines[*number];
        match &machine.incarnation {
            Some(living) => Some(living.number),
            None if machine.incarnations == 0 => Some(0),
            None => None,
        }
    }
}

impl Core {
    /// Crashes the machine `from` if a trap waited for this message of it; true if it did.
    pub(crate) fn crashes_at_message(&mut self, now: Duration, from: usize, edge: Edge, what: Option<&Told>) -> bool {
        if self.traps.is_empty() {
            return false;
        }
        let node = self.machines[from].name.clone();
        if self.machines[from].incarnation.is_none() || !springs(&mut self.traps, &node, edge) {
            return false;
        }
        let what = what.map_or("a message", |what| &what.text);
        let when = match edge {
            Edge::Before => "just before it sends",
            Edge::After => "as soon as this has arrived:",
        };
        self.crash_soon(now, &node, &format!("{when} {what}"));
        true
    }

    fn crash_soon(&mut self, now: Duration, node: &str, why: &str) {
        self.record(now, Happening::Doomed(format!("{node} is to crash {why}")));
        let doomed = self.crash(now, node);
        self.doomed.extend(doomed);
    }
}
