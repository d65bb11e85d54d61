//! Where actors went that moved last: an actor that ends for being idle is learnt to belong somewhere, and goes on there.

use std::collections::VecDeque;
use std::time::Duration;

use greenroom_protocols::node::NodeId;
use greenroom_world::Timestamp;

/// The last actors of one range that moved, by their hashes, the last one last.
#[derive(Default)]
pub(super) struct Memory(VecDeque<(u64, NodeId, Timestamp)>);

impl Memory {
    /// An actor goes to `to`.
    pub(super) fn note(&mut self, actor: u64, to: NodeId, now: Timestamp) {
        self.0.retain(|(known, ..)| *known != actor);
        if self.0.len() >= MOVED_MAX {
            self.0.pop_front();
        }
        self.0.push_back((actor, to, now));
    }

    /// Where an actor went, if that was not long ago.
    pub(super) fn went_to(&self, actor: u64, now: Timestamp) -> Option<NodeId> {
        let (_, node, at) = self.0.iter().find(|(known, ..)| *known == actor)?;
        (now.since(*at) < REMEMBERED).then_some(*node)
    }
}

/// Actors of one range that are remembered: four thousand of all ranges.
const MOVED_MAX: usize = 32;
/// So long after its last move an actor's next activation begins where it went.
const REMEMBERED: Duration = Duration::from_secs(10 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_moves_are_known_for_ten_minutes() {
        let (mut memory, begin) = (Memory::default(), Timestamp::from_nanos(1));
        memory.note(1, NodeId(7), begin);
        memory.note(1, NodeId(8), begin + Duration::from_secs(60));
        assert_eq!(memory.went_to(1, begin + REMEMBERED), Some(NodeId(8)), "its last move counts");
        assert_eq!(memory.went_to(1, begin + Duration::from_secs(60) + REMEMBERED), None);
        assert_eq!(memory.went_to(2, begin), None);
        for other in 2..2 + MOVED_MAX as u64 {
            memory.note(other, NodeId(9), begin);
        }
        assert_eq!((memory.went_to(1, begin), memory.0.len()), (None, MOVED_MAX), "it is bounded");
    }
}
