//! Whose the calls are that a connection holds back: no actor's leave no room for those of others.

use std::collections::{BTreeMap, VecDeque};

use super::send::OUT_LEN_MAX;

/// The calls that are held back, in their order.
#[derive(Default)]
pub(super) struct Shares {
    /// Their actors' hashes, and their bytes.
    calls: VecDeque<(u64, usize)>,
    of_actor: BTreeMap<u64, usize>,
}

impl Shares {
    /// Whether one more call to the actor of this hash may be held.
    pub(super) fn has_room(&self, actor: u64) -> bool {
        self.of_actor.get(&actor).is_none_or(|bytes| *bytes < OF_ACTOR_LEN_MAX)
    }

    /// Takes in that a call of so many bytes is held.
    pub(super) fn hold(&mut self, actor: u64, bytes: usize) {
        self.calls.push_back((actor, bytes));
        *self.of_actor.entry(actor).or_default() += bytes;
    }

    /// Takes in that the first call is held no more.
    pub(super) fn let_go(&mut self) {
        let Some((actor, bytes)) = self.calls.pop_front() else { return };
        if let Some(held) = self.of_actor.get_mut(&actor) {
            *held -= bytes;
            if *held == 0 {
                self.of_actor.remove(&actor);
            }
        }
    }
}

/// Bytes of calls to one actor after which no more are held: half of what a connection holds.
pub(super) const OF_ACTOR_LEN_MAX: usize = OUT_LEN_MAX / 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_to_one_actor_leave_room_for_those_to_others() {
        let mut shares = Shares::default();
        while shares.has_room(1) {
            shares.hold(1, 1 << 20);
        }
        assert!(shares.has_room(2), "another's have theirs");
        shares.hold(2, 1 << 10);
        shares.let_go();
        assert!(shares.has_room(1), "what has left takes none");
        while !shares.calls.is_empty() {
            shares.let_go();
        }
        assert!(shares.of_actor.is_empty(), "and nothing is remembered of it");
    }
}
