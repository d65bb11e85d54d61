//! Actors, as they are in memory while nothing happens.

use std::any::Any;
use std::cell::{Ref, RefCell};
use std::rc::Rc;

use super::events::telling;
use crate::actor::interface::Behaviour;
use crate::actor::key::Key;
use crate::shard::activation::AnyActivation;

/// The activations of one moment: nothing happens while somebody looks at them.
pub struct Look {
    pub(super) activations: Vec<Rc<dyn AnyActivation>>,
    pub(super) in_flight: usize,
}

/// An actor that somebody looks at, if no exclusive turn has it.
pub type Seen<'a, A> = Option<Ref<'a, A>>;

impl Look {
    /// What the actors are as text, by their names: those that can be shown and that no exclusive turn has.
    pub fn shown(&self) -> Vec<(String, String)> {
        let shown = |one: &Rc<dyn AnyActivation>| Some((one.id().to_string(), one.shown()?));
        telling(|| self.activations.iter().filter_map(shown).collect())
    }

    /// Messages and answers that are under way, and messages that wait until their actors are free.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// What the actor is called whose hash this is, as [`Step::at`](super::Step::at) has it.
    pub fn name_of(&self, actor: u64) -> Option<String> {
        let found = self.activations.iter().find(|activation| activation.id().stable_hash() == actor);
        found.map(|activation| activation.id().to_string())
    }

    /// The actors of one type, by their keys.
    pub fn all<A: Behaviour>(&self) -> impl Iterator<Item = (&Key, Seen<'_, A>)> {
        self.activations.iter().filter_map(|activation| {
            let actor: &dyn Any = activation.actor();
            let cell = actor.downcast_ref::<RefCell<Option<A>>>()?;
            let key = &activation.id().key;
            match cell.try_borrow() {
                // It has not been made yet.
                Ok(actor) if actor.is_none() => None,
                Ok(actor) => Some((key, Ref::filter_map(actor, Option::as_ref).ok())),
                Err(_) => Some((key, None)),
            }
        })
    }
}
