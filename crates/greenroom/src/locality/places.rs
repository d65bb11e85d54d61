//! The numbers that a node gives to other nodes, for rows that have little room.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use greenroom_protocols::flows::{PLACES_MAX, Place};
use greenroom_protocols::node::NodeId;

/// Which node has which number.
#[derive(Default)]
pub(super) struct Places(Mutex<Numbers>);

#[derive(Default)]
struct Numbers {
    of: BTreeMap<NodeId, u16>,
    nodes: BTreeMap<u16, NodeId>,
    next: u16,
    /// The places of nodes that are gone, in the order in which they went.
    gone: Vec<Place>,
}

impl Places {
    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The place of a node; `None` if there are no more numbers. They are not used again: a node would have to meet half of
    /// 65,536 others.
    pub(super) fn of(&self, node: NodeId) -> Option<Place> {
        let mut numbers = self.numbers();
        if let Some(known) = numbers.of.get(&node) {
            return Some(Place::away(*known));
        }
        let number = numbers.next;
        if number >= PLACES_MAX {
            return None;
        }
        numbers.next += 1;
        numbers.of.insert(node, number);
        numbers.nodes.insert(number, node);
        Some(Place::away(number))
    }

    /// The node at a place.
    pub(super) fn node(&self, place: Place) -> Option<NodeId> {
        self.numbers().nodes.get(&place.number()).copied()
    }

    /// The nodes that `keep` does not name are no more.
    pub(super) fn retain(&self, keep: impl Fn(NodeId) -> bool) {
        let mut numbers = self.numbers();
        let gone: Vec<(NodeId, u16)> =
            numbers.of.iter().filter(|(node, _)| !keep(**node)).map(|(node, number)| (*node, *number)).collect();
        for (node, number) in &gone {
            numbers.of.remove(node);
            numbers.nodes.remove(number);
        }
        numbers.gone.extend(gone.into_iter().map(|(_, number)| Place::away(number)));
    }

    /// The places that are no more, but for the first `known` of them.
    pub(super) fn gone(&self, known: usize) -> Vec<Place> {
        self.numbers().gone.get(known..).unwrap_or_default().to_vec()
    }
}
