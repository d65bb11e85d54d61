//! The way of a message that nobody waits for.
//!
//! The first one to a free neighbour begins at once, on its sender's stack. Those that the sender has for the same neighbour right behind it gather
//! in its mailbox, and begin together, as a run (`activation/runs.rs`): still on the sender's stack, if they become many.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use greenroom_world::Timestamp;

use super::activation::AnyActivation;
use super::baggage::Baggage;
use super::batch::Behind;
use super::cancel::CallKey;
use super::chain::{Chain, Link};
use super::drops::turn_down;
use super::envelope::{Body, Envelope};
use super::frames::Caller;
use super::holdback::Unsent;
use super::mail::{AnyMail, Form, Mail, is_awaited};
use super::mailbox::Spare;
use super::sampling::Place;
use super::submit::{Callee, other_interface};
use super::turns::Access;
use super::{Shard, Slot};
use crate::actor::error::Refusal;
use crate::actor::interface::{Interface, Method};
use crate::actor::reference::{Inner, Route};
use crate::actor::reply::ReplyTo;

/// Who hears of it when a one-way message is refused at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    Sender,
    Nobody,
}

/// What one-way messages need of their shard.
#[derive(Default)]
pub(super) struct Runs {
    /// Messages that may follow in the frame of the turn that begins next, or may have followed in the last one.
    pub(super) more: Cell<u32>,
    /// Which of this shard's activations such a message went to last.
    told: Cell<Option<Slot>>,
    pub(super) spare: Spare,
}

impl Shard {
    /// Sends a one-way message: begins its turn at once if that is free and on this shard.
    pub(crate) fn send<M: Method>(
        &self,
        target: Arc<Inner>,
        method: M,
        own: Option<Box<Baggage>>,
        told: Told,
    ) -> Result<(), Refusal> {
        if let Some(holdback) = self.holdback() {
            return holdback.clone().send(self, Unsent::new(target, method, own), told);
        }
        let callee = Callee::of::<M>();
        let mut baggage = self.load(own)?;
        if self.intercepts {
            self.outgoing(&target, callee.method.name, false, &mut baggage)?;
        }
        let chain = Chain { link: Link::None, baggage };
        let message = method.into_message(ReplyTo::nobody());
        if let Some((neighbour, again)) = self.neighbour(&target) {
            if !again && self.can_begin(&neighbour, callee.access()) {
                self.count_near(&target.id, || false);
                let caller = Caller::Apart { chain, call: CallKey::NONE };
                let message = &mut Some(message);
                let begun = neighbour.begin_here(self, callee.access(), message, Timestamp::NEVER, caller);
                return begun.map(drop).ok_or_else(|| other_interface(&target.id));
            }
            let envelope = Envelope { body: Body::Typed(message), deadline: Timestamp::NEVER, chain };
            let envelope = &mut Some(envelope);
            if !self.is_fenced() && neighbour.gather(self, envelope) {
                self.count_near(&target.id, || false);
                return Ok(());
            }
            return self.submit_one_way(&target, callee, told, &mut Mail::<M::Interface>(envelope));
        }
        let envelope = Envelope { body: Body::Typed(message), deadline: Timestamp::NEVER, chain };
        if let Route::Here(shard, slot) = target.route()
            && shard != self.id()
            && let Some(index) = self.sibling(shard)
            && !self.is_fenced()
            && !self.is_cut(shard, slot)
        {
            self.count_out(&target.id, Place::Shard(shard), || false);
            // The reference goes along, so that nobody counts it on the way.
            self.post_message::<M::Interface>(index, slot, target, envelope);
            return Ok(());
        }
        self.submit_one_way(&target, callee, told, &mut Mail::<M::Interface>(&mut Some(envelope)))
    }

    /// The actor's activation, if it is on this shard, and whether the last one-way message went there, too.
    fn neighbour(&self, target: &Inner) -> Option<(Rc<dyn AnyActivation>, bool)> {
        let Route::Here(shard, slot) = target.route() else { return None };
        if shard != self.id() || self.is_rehearsed() {
            return None;
        }
        let again = self.runs.told.replace(Some(slot)) == Some(slot);
        Some((self.activation_of(target, slot)?, again))
    }

    /// Whether a turn of a neighbour may begin on this stack.
    fn can_begin(&self, neighbour: &Rc<dyn AnyActivation>, access: Access) -> bool {
        self.may_begin_inline() && neighbour.clone().is_free(self, access) && self.fence_open()
    }

    fn submit_one_way(
        &self,
        target: &Arc<Inner>,
        callee: Callee,
        told: Told,
        mail: &mut dyn AnyMail,
    ) -> Result<(), Refusal> {
        let result = self.submit(target, mail);
        if let Err(refusal) = &result {
            self.gauges().count_refused_send();
            if told == Told::Nobody {
                self.port.node.dead_letters().post(&target.id, callee.method.name, refusal);
            }
        }
        result
    }

    /// Takes in a message that another shard of this node has sent to `slot`.
    pub(super) fn deliver<I: Interface>(
        &self,
        target: &Arc<Inner>,
        slot: Slot,
        behind: Behind,
        envelope: Envelope<I::Message>,
    ) {
        self.deliver_mail(target, slot, behind, &mut Mail::<I>(&mut Some(envelope)));
    }

    fn deliver_mail(&self, target: &Arc<Inner>, slot: Slot, behind: Behind, mail: &mut dyn AnyMail) {
        self.count_in(&target.id, || (Place::Shard(behind.from), is_awaited(mail)));
        let offered = match self.activation_of(target, slot) {
            Some(activation) if behind.more && activation.clone().gather(self, mail.envelope()) => return,
            Some(activation) => self.hand(activation, target, mail),
            None => Ok(()),
        };
        // If it is still there, the activation has ended: to its next one.
        let result = offered.and_then(|()| match mail.form() {
            Form::Taken => Ok(()),
            _ => self.submit(target, mail),
        });
        if let Err(refusal) = result {
            turn_down(&target.id, mail, refusal);
        }
    }
}
