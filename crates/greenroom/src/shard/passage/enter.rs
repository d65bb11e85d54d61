//! What goes over: the activation as a value.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use greenroom_protocols::directory::Epoch;

use crate::actor::cx::Cx;
use crate::actor::error::Refusal;
use crate::actor::interface::{Behaviour, Message};
use crate::actor::key::ActorId;
use crate::here::kinds::KindEntry;
use crate::here::location::Passage;
use crate::shard::activation::{Activation, AnyActivation, Phase};
use crate::shard::envelope::{Body, PortableEnvelope};
use crate::shard::mailbox::Mailbox;
use crate::shard::submit::refuse;
use crate::shard::{Shard, ShardId, Slot};

/// An activation on its way to another shard of its node.
pub(crate) struct Enter {
    pub(super) id: ActorId,
    pub(super) epoch: Epoch,
    pub(super) idle: Duration,
    pub(super) passage: Passage,
    pub(super) actor: Box<dyn AnyPassenger>,
    /// What the parts of the shard that it leaves know of it.
    pub(super) brought: Vec<Box<dyn Any + Send>>,
}

/// An activation apart from any shard, whose actor's type is not known.
pub(super) trait AnyPassenger: Send {
    /// The activation, in its new slot.
    fn activation(self: Box<Self>, slot: Slot) -> Rc<dyn AnyActivation>;

    /// Refuses what waits for it. It is no more.
    fn refuse(self: Box<Self>, refusal: Refusal);
}

struct Passenger<A: Behaviour> {
    cx: Cx,
    kind: Arc<KindEntry<A>>,
    actor: A,
    mailbox: Mailbox<PortableEnvelope<Message<A>>>,
    made: u32,
    last_used: u32,
    kept_until: u32,
    is_stale: bool,
}

impl Enter {
    /// It reaches no shard any more.
    pub(crate) fn refuse(self, refusal: Refusal) {
        self.actor.refuse(refusal);
    }
}

impl<A: Behaviour> Activation<A> {
    /// Goes to another shard of the node, as no turn runs; stays if something holds it.
    pub(in crate::shard) fn pass(self: &Rc<Self>, shard: &Shard, to: ShardId) {
        // Timers and news belong to this shard, and what is to be saved has its time here.
        let mut stays =
            A::FOREIGN || self.kind.is_spawned() || self.saves_late() || self.is_unsettled() || !self.idle();
        self.mailbox.each(&mut |_, envelope| stays |= matches!(envelope.body, Body::Tick(_) | Body::Ended(_)));
        let Cx { port, id, epoch, state } = &self.cx;
        if stays || !shard.lets_over(id, *epoch, self.slot, to) {
            return;
        }
        let actor = self.actor.borrow_mut().take().expect("an activation that is ready has an actor");
        self.phase.set(Phase::Gone);
        let passenger = Passenger {
            cx: Cx { port: port.clone(), id: id.clone(), epoch: *epoch, state: state.clone() },
            kind: self.kind.clone(),
            actor,
            mailbox: self.mailbox.moved(&mut |envelope| envelope.portable(shard)),
            made: self.made,
            last_used: self.last_used.get(),
            kept_until: self.kept_until.get(),
            is_stale: self.is_stale.get(),
        };
        shard.send_over((id, *epoch, self.slot), self.kind.idle(), to, Box::new(passenger));
    }
}

impl<A: Behaviour> AnyPassenger for Passenger<A> {
    fn activation(self: Box<Self>, slot: Slot) -> Rc<dyn AnyActivation> {
        let Self { cx, kind, actor, mailbox, made, last_used, kept_until, is_stale } = *self;
        Rc::new(Activation {
            cx,
            kind,
            slot,
            actor: RefCell::new(Some(actor)),
            mailbox: mailbox.moved(&mut Into::into),
            made,
            last_used: Cell::new(last_used),
            kept_until: Cell::new(kept_until),
            reads: Cell::new(0),
            phase: Cell::new(Phase::Ready),
            exclusive: Cell::new(false),
            scheduled: Cell::new(false),
            watched: Cell::new(false),
            asked_to_end: Cell::new(None),
            is_stale: Cell::new(is_stale),
        })
    }

    fn refuse(self: Box<Self>, refusal: Refusal) {
        let Self { cx, kind, mailbox, .. } = *self;
        if let Some(gate) = kind.gate() {
            gate.leave(mailbox.len());
        }
        for (_, envelope) in mailbox.take() {
            refuse::<A::Interface>(&cx.id, envelope.into(), refusal.clone());
        }
    }
}
