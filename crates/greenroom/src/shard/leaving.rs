//! How a shard gives up its activations: handed over when its node drains, or cut when their time is over.

use std::rc::Rc;

use super::activation::AnyActivation;
use super::{Item, Shard};
use crate::actor::error::Refusal;
use crate::actor::interface::Why;

impl Shard {
    /// Lets every activation end at its next turn boundary, a few at a time from place `first` on: what waits for it goes
    /// where its actor is next.
    pub(crate) fn give_up(&self, first: u32) {
        let (some, next) = self.activations.borrow().some(first, HAND_OVERS_A_ROUND);
        some.iter().for_each(|activation| self.give_up_one(activation));
        if let Some(next) = next {
            // The rest, when the others of this shard have had their go. A shard that has ended has none.
            let _ = self.here.push(Item::Run(Box::new(move |shard| shard.give_up(next))));
        }
    }

    /// Lets an activation end at its next turn boundary.
    pub(super) fn give_up_one(&self, activation: &Rc<dyn AnyActivation>) {
        // Stateless workers and who serves a feature stay to the last.
        let kinds = self.port.node.kinds();
        let serves = kinds.workers(activation.id().kind) > 0;
        // Reliable actors end with their partitions.
        if serves || kinds.is_reliable(activation.id().kind) || self.is_servant(activation.slot()) {
            return;
        }
        let moves = self.destination(activation.id()).is_some_and(|to| self.migrate(activation, to).is_ok());
        if !moves {
            activation.clone().end(self, Why::Stopping);
        }
    }

    /// Ends a turn that waits, without its end.
    pub(super) fn cut_turns(&self, activation: &Rc<dyn AnyActivation>) {
        let turns = self.turns.borrow().of(activation.slot());
        for turn in turns {
            let future = self.turns.borrow_mut().cut(turn);
            // What it owns may send replies when it is dropped.
            drop(future);
            let known = self.turns.borrow_mut().end(turn);
            drop(known);
        }
    }

    /// Refuses what waits for the directory, or at activations that will not get to it, and names some of these.
    pub(crate) fn refuse_waiting(&self) -> Vec<String> {
        self.refuse_parked(&Refusal::Stopping);
        self.refuse_held_back(&Refusal::Stopping);
        self.refuse_entering(&Refusal::Stopping);
        self.parts.iter().for_each(|part| part.refuse_waiting(&Refusal::Stopping));
        let all: Vec<_> = self.activations.borrow().iter().cloned().collect();
        let mut names = Vec::new();
        for activation in all {
            activation.refuse_waiting(&Refusal::Stopping);
            if names.len() < NAMES_MAX && activation.busy() {
                names.push(activation.id().to_string());
            }
        }
        names
    }
}

/// Activations that one round ends.
const HAND_OVERS_A_ROUND: u32 = 512;
/// Activations that are named as cut.
const NAMES_MAX: usize = 16;
