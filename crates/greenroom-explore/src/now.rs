//! What claims look at.

use std::cell::{Cell, Ref};

use greenroom::Key;
use greenroom::rehearsal::{Behaviour, Look};

/// The actors at one moment, as they are in memory.
pub struct Now {
    look: Look,
    /// Whether somebody asked for an actor that an exclusive turn has.
    is_blocked: Cell<bool>,
}

impl Now {
    pub(crate) fn new(look: Look) -> Self {
        Self { look, is_blocked: Cell::new(false) }
    }

    /// The actors of type `A` that are active.
    pub fn all<A: Behaviour>(&self) -> impl Iterator<Item = (&Key, Ref<'_, A>)> {
        self.look.all::<A>().filter_map(|(key, seen)| {
            if seen.is_none() {
                self.is_blocked.set(true);
            }
            Some((key, seen?))
        })
    }

    /// The actor of type `A` that is called `key`, if it is active.
    pub fn get<A: Behaviour>(&self, key: impl Into<Key>) -> Option<Ref<'_, A>> {
        let key = key.into();
        let found = self.look.all::<A>().find(|(other, _)| **other == key)?.1;
        if found.is_none() {
            self.is_blocked.set(true);
        }
        found
    }

    /// Messages and answers that are under way, and messages that wait until their actors are free.
    pub fn in_flight(&self) -> usize {
        self.look.in_flight()
    }

    /// What `holds` says of it; nothing if it asks for an actor that an exclusive turn has.
    pub(crate) fn judge(&self, holds: &dyn Fn(&Now) -> bool) -> Option<bool> {
        self.is_blocked.set(false);
        let holds = holds(self);
        (!self.is_blocked.get()).then_some(holds)
    }
}
