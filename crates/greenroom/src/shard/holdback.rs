//! What a turn keeps back until it is committed: who commits turns gives them a [`Holdback`] with their messages, and what
//! they send goes there instead of away.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;

use super::Shard;
use super::baggage::Baggage;
use super::mail::{self, Described};
use super::one_way::Told;
use super::submit::Callee;
use crate::actor::error::Refusal;
use crate::actor::interface::Method;
use crate::actor::reference::Inner;

/// What one turn keeps back.
pub(crate) trait Holdback: Any + Send + Sync + Debug {
    /// Takes a message that the turn sends one-way. The turn fails if that cannot be and nobody is told.
    ///
    /// # Errors
    /// [`Refusal`]: it can never be sent.
    fn send(&self, shard: &Shard, message: Unsent, told: Told) -> Result<(), Refusal>;

    /// Refuses a call that the turn awaits, if it would act before the commit.
    ///
    /// # Errors
    /// [`Refusal::Invalid`], which says what to do instead.
    fn check_call(&self, target: &Inner, callee: Callee) -> Result<(), Refusal>;
}

/// What the turn that runs here keeps back, if it is one that does.
pub(crate) fn holdback() -> Option<Arc<dyn Holdback>> {
    Shard::with(|shard| shard.and_then(Shard::holdback).cloned())
}

/// A one-way message that has not left, its types apart.
pub(crate) struct Unsent {
    pub(crate) target: Arc<Inner>,
    pub(crate) own: Option<Box<Baggage>>,
    pub(crate) interface: &'static Described,
    /// The method's name.
    pub(crate) method: &'static str,
    /// The method with its arguments.
    pub(crate) call: Box<dyn AnyMethod>,
}

impl Unsent {
    #[cold]
    pub(crate) fn new<M: Method>(target: Arc<Inner>, method: M, own: Option<Box<Baggage>>) -> Self {
        let interface = Described::of::<M::Interface>();
        Self { target, own, interface, method: interface.name(M::INDEX), call: Box::new(method) }
    }

    /// Sends it after all. What is refused is a dead letter, as of any other sender.
    pub(crate) fn send(self, shard: &Shard) {
        self.call.send(shard, self.target, self.own);
    }
}

/// A method with its arguments, its types apart.
pub(crate) trait AnyMethod: Send {
    /// The arguments, as they travel.
    ///
    /// # Errors
    /// [`Refusal::Unsendable`]: they have no encoding.
    fn arguments(self: Box<Self>) -> Result<Bytes, Refusal>;

    /// Sends it one-way.
    fn send(self: Box<Self>, shard: &Shard, target: Arc<Inner>, own: Option<Box<Baggage>>);
}

impl<M: Method> AnyMethod for M {
    fn arguments(self: Box<Self>) -> Result<Bytes, Refusal> {
        mail::arguments(*self)
    }

    fn send(self: Box<Self>, shard: &Shard, target: Arc<Inner>, own: Option<Box<Baggage>>) {
        let _ = shard.send(target, *self, own, Told::Nobody);
    }
}
