//! Passage: an actor goes from one shard of its node to another, while messages come for it from all of them.
//! Pure: no clock, no I/O, no randomness.
//!
//! What goes from one shard to another keeps its order. The *old* shard says in the directory that the actor is passing, sends
//! `enter` to the *new* one, and behind it all that still comes to the old slot. Each shard but the old one *cuts*, when the
//! old one tells it to or when it finds the actor passing in the directory, whichever is first: it uses the old slot no more,
//! and says so by a word through the old shard, which stands behind all that it has sent there. What it sends from then on goes
//! to the new shard, which holds it until that word has come:
//!
//! ```text
//! old → new     enter, messages of a third shard, its word, …
//! third → old   messages, its word
//! third → new   messages: held, until its word, and those of all other shards, have come by way of the old one
//! ```
//!
//! Then the directory gets the new slot. So who sends finds the actor at every time, and its messages stay in order, by
//! whichever reference they were sent.
//!
//! The bad traces, and the tests that have them: `model` is `tests/models/passage.rs`, in which each rule has a switch; the others are in
//! `tests/shards` of the conformance suite.
//!
//! | | trace | tests |
//! |---|---|---|
//! | S1 | a third shard's message overtakes `enter` | `model::what_overtakes_an_actor_would_make_it_a_second_time`, `threads::messages_that_overtake_an_actor_wait_for_it` |
//! | S2 | the directory names the old slot | `model::who_finds_the_old_slot_in_the_directory_would_find_nobody`, `passages::who_knows_the_old_slot_reaches_the_actor` |
//! | S3 | the new shard's inbox is full behind `enter` | `model::what_follows_an_actor_would_be_refused_by_a_full_inbox`, `passages::a_full_inbox_refuses_none_of_what_follows_an_actor` |
//! | S4 | the node leaves or drains meanwhile | `passages::an_actor_that_goes_while_its_node_stops_has_its_last_hook`, `passages::an_actor_that_goes_while_its_node_drains_has_its_last_hook` |
//! | S5 | an order names the old slot | `model::an_order_for_the_old_slot_would_be_lost`, `passages::an_order_that_names_the_old_slot_follows_the_actor` |
//! | | a message overtakes another one of its sender | `model::what_comes_directly_would_overtake_what_comes_by_the_old_shard`, `model::who_used_the_old_slot_after_his_word_would_overtake_himself`, `passages::messages_stay_in_order_while_everybody_moves` |

use std::collections::{BTreeSet, VecDeque};

use crate::mix::mix;

/// The slots that a shard uses no more, of actors that have gone from other shards: the last ones, in sets of eight.
///
/// Who has used a reference so long ago that its slot is not among them finds its actor all the same: the old shard hands the
/// message on.
#[derive(Clone, Debug)]
pub struct Cuts<R>(Vec<[Option<R>; WAYS]>);

impl<R> Default for Cuts<R> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<R: Copy + Eq> Cuts<R> {
    /// Uses `route` no more, which is the only one with this number. Whether it was used until now: then the word is to be said.
    pub fn cut(&mut self, number: u64, route: R) -> bool {
        if self.0.is_empty() {
            self.0.resize(SETS, [None; WAYS]);
        }
        let set = &mut self.0[set_of(number)];
        if set.contains(&Some(route)) {
            return false;
        }
        // The oldest is the last.
        set.rotate_right(1);
        set[0] = Some(route);
        true
    }

    /// Whether `route` is known to lead nowhere.
    #[inline]
    pub fn is_cut(&self, number: u64, route: R) -> bool {
        !self.0.is_empty() && self.0[set_of(number)].contains(&Some(route))
    }
}

fn set_of(number: u64) -> usize {
    mix(number) as usize % SETS
}

/// The entrance of one actor to its new shard: what comes for it ahead of the others' words waits here.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Entrance<S, M> {
    entered: bool,
    through: BTreeSet<S>,
    held: VecDeque<M>,
}

impl<S, M> Default for Entrance<S, M> {
    fn default() -> Self {
        Self { entered: false, through: BTreeSet::new(), held: VecDeque::new() }
    }
}

impl<S: Ord, M> Entrance<S, M> {
    /// Keeps a message that has come directly, and not by way of the old shard.
    ///
    /// # Errors
    /// The message: [`HELD_MAX`] wait already.
    pub fn hold(&mut self, message: M) -> Result<(), M> {
        if self.held.len() >= HELD_MAX {
            return Err(message);
        }
        self.held.push_back(message);
        Ok(())
    }

    /// The actor is here.
    pub fn enter(&mut self) {
        self.entered = true;
    }

    /// Whether the actor is here.
    pub fn has_entered(&self) -> bool {
        self.entered
    }

    /// The word of a shard has come.
    pub fn through(&mut self, shard: S) {
        self.through.insert(shard);
    }

    /// Whether all of the `others` shards, those but the old one, have said their word: what is held may follow, and then
    /// messages may come directly.
    pub fn is_open(&self, others: usize) -> bool {
        self.entered && self.through.len() >= others
    }

    /// The first message that is held.
    pub fn take(&mut self) -> Option<M> {
        self.held.pop_front()
    }
}

/// Slots of a set: some twenty thousand later ones must be cut before one is forgotten.
const WAYS: usize = 8;
const SETS: usize = 8192;
/// Messages that one entrance holds at most.
pub const HELD_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_stays_cut_while_thousands_of_others_are() {
        let mut cuts = Cuts::default();
        assert!(!cuts.is_cut(0, 0));
        assert!(cuts.cut(0, 0) && !cuts.cut(0, 0), "the word is said once");
        (1..10_000_u64).for_each(|route| assert!(cuts.cut(route, route)));
        assert!((0..10_000).all(|route| cuts.is_cut(route, route)));
    }
}
