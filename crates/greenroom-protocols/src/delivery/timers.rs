//! Messages that are sent when they are due.

use std::collections::BTreeMap;
use std::time::Duration;

use super::mailbox::{Effect, Item, Ready};
use super::{Leaves, Slot, Source, Timer};
use crate::reminders::Wall;
use crate::time::Timestamp;

/// Where a timer lies: by the time when it is due.
pub(super) type Place = (Wall, Slot);

/// The timers of one partition that no commit under way sends.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Timers<A, M> {
    /// When the ownership began, by both clocks: within it only the monotonic one counts.
    began: (Timestamp, Wall),
    waiting: BTreeMap<Place, Timer<A, M>>,
    /// What the next commits send.
    due: BTreeMap<Place, Timer<A, M>>,
    /// What the journal has refused to send and to park, until it is tried again.
    held: BTreeMap<(Timestamp, Slot), Timer<A, M>>,
    /// Those that have names, by their actors.
    named: BTreeMap<(A, String), Place>,
}

impl<A: Clone + Ord, M: Clone> Timers<A, M> {
    pub(super) fn new(now: Timestamp, wall: Wall, timers: Vec<Timer<A, M>>) -> Self {
        let (waiting, due, held, named) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut all = Self { began: (now, wall), waiting, due, held, named };
        timers.into_iter().for_each(|timer| all.insert(timer));
        all
    }

    fn insert(&mut self, timer: Timer<A, M>) {
        let place = (timer.due, timer.slot);
        if let Some(name) = name_of(&timer) {
            self.named.insert(name, place);
        }
        self.waiting.insert(place, timer);
    }

    /// Where the timer of this name lies.
    pub(super) fn named(&self, name: &(A, String)) -> Option<Place> {
        self.named.get(name).copied()
    }

    /// Takes in what a commit has put and, with `None`, removed.
    pub(super) fn committed(&mut self, changed: BTreeMap<Place, Option<Timer<A, M>>>) {
        for (place, timer) in changed {
            match timer {
                Some(timer) => self.insert(timer),
                None => {
                    let removed = self.waiting.remove(&place).or_else(|| self.due.remove(&place));
                    removed.iter().for_each(|timer| self.unname(timer));
                }
            }
        }
    }

    fn unname(&mut self, timer: &Timer<A, M>) {
        if let Some(name) = name_of(timer)
            && self.named.get(&name) == Some(&(timer.due, timer.slot))
        {
            self.named.remove(&name);
        }
    }

    /// Looks for what has become due.
    pub(super) fn tick(&mut self, now: Timestamp) {
        while let Some(entry) = self.held.first_entry()
            && entry.key().0 <= now
        {
            let timer = entry.remove();
            self.due.insert((timer.due, timer.slot), timer);
        }
        while let Some(entry) = self.waiting.first_entry()
            && at(self.began, entry.key().0) <= now
        {
            let (place, timer) = entry.remove_entry();
            self.due.insert(place, timer);
        }
    }

    /// Whether the next commit has something to send.
    pub(super) fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// The next timer that is due, for a commit that removes all that `cancelled` says; it cannot be cancelled any more.
    pub(super) fn take(&mut self, cancelled: impl Fn(&Place) -> bool) -> Option<Ready<A, M>> {
        let place = self.due.keys().copied().find(|place| !cancelled(place))?;
        let timer = self.due.remove(&place)?;
        self.unname(&timer);
        let Timer { due, slot, outgoing, .. } = timer;
        let leaves = Some(Leaves::Message { to: outgoing.to, delivery: outgoing.delivery });
        let item = Item::new(Source::Timer { due, slot }, outgoing.envelope, leaves);
        Some(Ready { turn: None, item, effect: Effect::Sent })
    }

    /// Takes back what the journal will neither send nor park, until it is tried again at `until`.
    pub(super) fn hold(&mut self, until: Timestamp, due: Wall, slot: Slot, item: Item<A, M>) {
        if let Some(Leaves::Message { to, delivery }) = item.leaves {
            let outgoing = super::Outgoing { to, delivery, envelope: item.envelope };
            self.held.insert((until, slot), Timer { due, slot, outgoing, name: None });
        }
    }

    /// When this wants a [`tick`](Self::tick).
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        let waiting = self.waiting.first_key_value().map(|((due, _), _)| at(self.began, *due));
        let held = self.held.first_key_value().map(|((until, _), _)| *until);
        waiting.into_iter().chain(held).min()
    }
}

/// What a timer is cancelled by: its actor is the one that sends.
pub(super) fn name_of<A: Clone, M>(timer: &Timer<A, M>) -> Option<(A, String)> {
    Some((timer.outgoing.envelope.from.clone()?, timer.name.clone()?))
}

/// When `due` is, by the clock of this ownership.
fn at((now, wall): (Timestamp, Wall), due: Wall) -> Timestamp {
    now + Duration::from_millis(due.0.saturating_sub(wall.0))
}
