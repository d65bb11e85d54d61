//! What is parked, and what operators have done about it (R6).

use std::collections::BTreeMap;

use super::mailbox::{Effect, Item, Ready};
use super::{Action, DeadLetter, Lane, Leaves, Parked, Partition, Sealed, Slot, Source};
use crate::time::Timestamp;

/// The parked messages that the journal holds. An operator's wish takes one, and until that is done nobody else gets it: a
/// message that is retried twice runs once, and one that is retried is not dropped beside that.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Lot<A, M> {
    slots: BTreeMap<Slot, Standing>,
    /// Outputs that are handed over again, and where they lie.
    outputs: BTreeMap<(Lane, u64), (Slot, Sealed<A, M>)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Standing {
    Lies,
    Taken,
}

impl<A, M> Lot<A, M> {
    pub(super) fn new(slots: impl IntoIterator<Item = Slot>) -> Self {
        let slots = slots.into_iter().map(|slot| (slot, Standing::Lies)).collect();
        Self { slots, outputs: BTreeMap::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether a message lies there and nobody has taken it.
    pub(super) fn lies(&self, slot: Slot) -> bool {
        self.slots.get(&slot) == Some(&Standing::Lies)
    }

    /// Takes what lies at `slot`; whether it was there to be taken.
    fn take(&mut self, slot: Slot) -> bool {
        let free = self.lies(slot);
        if free {
            self.slots.insert(slot, Standing::Taken);
        }
        free
    }

    /// Takes in what a commit has put or, with `None`, removed.
    pub(super) fn committed(&mut self, changed: BTreeMap<Slot, Option<Parked<A, M>>>) {
        for (slot, parked) in changed {
            match parked {
                Some(_) => _ = self.slots.insert(slot, Standing::Lies),
                None => _ = self.slots.remove(&slot),
            }
        }
    }

    /// Gives back what was taken and could not be done: it lies where it lay. Whether it was taken.
    fn give_back(&mut self, slot: Slot) -> bool {
        self.slots.insert(slot, Standing::Lies) == Some(Standing::Taken)
    }
}

impl<A: Clone + Ord, M: Clone> Partition<A, M> {
    /// Whether a message is parked at `slot` that no operator's wish has taken: only then [`Event::Retry`] and
    /// [`Event::Drop`] do anything.
    ///
    /// [`Event::Retry`]: super::Event::Retry
    /// [`Event::Drop`]: super::Event::Drop
    pub fn is_parked(&self, slot: Slot) -> bool {
        self.lot.lies(slot)
    }

    /// How many messages are parked.
    pub fn parked(&self) -> usize {
        self.lot.len()
    }

    pub(super) fn retry(&mut self, now: Timestamp, parked: Parked<A, M>, out: &mut Vec<Action<A, M>>) {
        let Parked { slot, envelope, leaves, .. } = parked;
        if !self.lot.take(slot) && self.config.checks.parked_once {
            return;
        }
        match leaves {
            None => self.accept(now, Source::Parked(slot), envelope, out),
            Some(Leaves::Output { lane, number }) => {
                let life = self.life;
                self.lot.outputs.insert((lane, number), (slot, envelope.clone()));
                out.push(Action::Output { life, lane, number, envelope, patient: true });
            }
            Some(Leaves::Message { .. }) => {
                let item = Item::new(Source::Parked(slot), envelope, leaves);
                self.ready.push_back(Ready { turn: None, item, effect: Effect::Sent });
            }
        }
    }

    /// A message that an operator wanted stays parked.
    pub(super) fn give_back(&mut self, slot: Slot) {
        let was_taken = self.lot.give_back(slot);
        assert!(was_taken || !self.config.checks.parked_once, "a parked message is given back that nobody had taken");
    }

    pub(super) fn discard(&mut self, parked: Parked<A, M>) {
        let Parked { slot, envelope, leaves, .. } = parked;
        if self.lot.take(slot) || !self.config.checks.parked_once {
            let item = Item::new(Source::Parked(slot), envelope, leaves);
            self.ready.push_back(Ready { turn: None, item, effect: Effect::Discarded });
        }
    }

    /// Takes in that an outlet has an output.
    pub(super) fn delivered(&mut self, now: Timestamp, lane: Lane, number: u64, out: &mut Vec<Action<A, M>>) {
        match self.lot.outputs.remove(&(lane, number)) {
            Some((slot, envelope)) => {
                let leaves = Some(Leaves::Output { lane, number });
                let item = Item::new(Source::Parked(slot), envelope, leaves);
                self.ready.push_back(Ready { turn: None, item, effect: Effect::Sent });
            }
            None => self.sender.delivered(now, lane, number, out),
        }
    }

    /// Takes in that an outlet will not have an output: it is parked.
    pub(super) fn unwanted(&mut self, lane: Lane, number: u64, error: String) {
        let (slot, source, envelope) = match self.lot.outputs.remove(&(lane, number)) {
            Some((slot, envelope)) => (slot, Source::Parked(slot), envelope),
            None => match self.sender.refused(lane, number) {
                Some(envelope) => (self.slot(), Source::Output { lane, number }, envelope),
                None => return,
            },
        };
        let item = Item::new(source, envelope, Some(Leaves::Output { lane, number }));
        self.ready.push_back(Ready { turn: None, item, effect: Effect::Parked(slot, error) });
    }

    /// What is committed of a message that no actor of this partition was to get.
    pub(super) fn left(
        &mut self,
        now: Timestamp,
        item: Item<A, M>,
        effect: &Effect<A, M>,
        out: &mut Vec<Action<A, M>>,
    ) {
        if let Source::Output { lane, number } = item.source {
            self.sender.parked(now, lane, number, out);
        }
        if matches!(effect, Effect::Discarded) {
            out.push(Action::DeadLetter { envelope: item.envelope, why: DeadLetter::Dropped });
        }
    }

    /// What becomes of such a message whose commit was refused by itself: it is parked, or stays so.
    pub(super) fn stays(&mut self, now: Timestamp, ready: Ready<A, M>, error: String, out: &mut Vec<Action<A, M>>) {
        let Ready { item, effect, .. } = ready;
        match (item.source, effect) {
            (Source::Timer { .. }, Effect::Sent) => {
                let effect = Effect::Parked(self.slot(), error);
                self.ready.push_back(Ready { turn: None, item, effect });
            }
            (Source::Parked(slot), Effect::Sent) => {
                let effect = Effect::Parked(slot, error);
                self.ready.push_back(Ready { turn: None, item, effect });
            }
            (Source::Timer { due, slot }, _) => self.timers.hold(now + self.config.hold, due, slot, item),
            // It lies there already: only its error is an earlier one.
            (Source::Parked(slot), _) => self.give_back(slot),
            // The outlet's own pauses come before it is refused once more.
            (Source::Output { lane, number }, _) => self.sender.again(now, lane, number, out),
            (Source::Counted { .. } | Source::Loose { .. } | Source::Uncounted | Source::Queue(_), _) => {
                debug_assert!(false, "these are for actors of this partition");
            }
        }
    }
}
