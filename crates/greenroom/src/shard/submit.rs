//! The way of a message: to an activation of this shard, to another shard, or to another node.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use greenroom_protocols::courses::Next;
use greenroom_protocols::directory::Grant;
use greenroom_protocols::node::NodeId;
use greenroom_security::principal::Principal;
use greenroom_wire::CallId;
use greenroom_world::Timestamp;

use super::activation::AnyActivation;
use super::baggage::{Baggage, Load};
use super::calls::{CallSlot, Calls, Completion, Waiter};
use super::chain::Chain;
use super::drops::turn_down;
use super::envelope::{Body, Envelope, PortableEnvelope, WireCall};
use super::frames::{Begun, Caller};
use super::mail::{AnyMail, Form, Mail, is_awaited};
use super::outgoing::Outgoing;
use super::raw::{Journey, RouteTarget};
use super::sampling::Place;
use super::turns::Access;
use super::{Shard, Slot};
use crate::actor::error::{CallError, Doubt, Refusal};
use crate::actor::interface::{Interface, Method, MethodInfo};
use crate::actor::key::ActorId;
use crate::actor::reference::{Inner, Route};
use crate::actor::reply::{AnyReply, ReplyTo, WireReply, refused};
use crate::actor::spent::Behind;

/// A message on its way, its type apart: what shards hand to each other, and what waits for the directory.
pub(crate) trait AnyParcel: Send {
    /// Goes on from `shard`.
    fn deliver(self: Box<Self>, shard: &Shard);

    /// Ends here.
    fn refuse(self: Box<Self>, refusal: Refusal);

    /// When it is of no use any more.
    fn deadline(&self) -> Timestamp;

    /// The actor that it is for.
    fn id(&self) -> &ActorId;

    /// The hash of that.
    fn hash(&self) -> u64;

    /// On whose behalf it comes.
    fn principal(&self) -> Option<&Principal>;
}

/// A message of a known interface.
pub(crate) struct Parcel<I: Interface> {
    pub(crate) target: Arc<Inner>,
    pub(crate) envelope: PortableEnvelope<I::Message>,
}

impl Shard {
    /// Whether messages to `target` may go by this shard: its reference is bound to this node, or to none.
    pub(crate) fn serves(&self, target: &Inner) -> bool {
        target.port.as_ref().is_none_or(|port| Arc::ptr_eq(&port.node, &self.port.node))
    }

    /// The activation in the slot that `target` was in when a message last went there, if it is the same actor's.
    pub(super) fn activation_of(&self, target: &Inner, slot: Slot) -> Option<Rc<dyn AnyActivation>> {
        let found = self.activation(slot)?;
        // A slot's generations are never used twice by one node. References that are bound to none may have come from another.
        (target.port.is_some() || *found.id() == target.id).then_some(found)
    }

    /// The turn of the actor that has run longest, if it is on this shard.
    pub(crate) fn runs_for(&self, target: &Inner) -> Option<Behind> {
        let Route::Here(shard, slot) = target.route() else { return None };
        if shard != self.id() {
            return None;
        }
        self.behind(self.activation_of(target, slot)?.slot())
    }

    /// The actor's activation, if it is on this shard and a turn of `access` may begin on this stack.
    fn free_neighbour(&self, target: &Inner, access: Access) -> Option<Rc<dyn AnyActivation>> {
        let Route::Here(shard, slot) = target.route() else { return None };
        if shard != self.id() || self.is_rehearsed() || !self.may_begin_inline() {
            return None;
        }
        let activation = self.activation_of(target, slot)?;
        (activation.clone().is_free(self, access) && self.fence_open()).then_some(activation)
    }

    /// Makes a call: begins its turn at once if that is free and on this shard.
    pub(crate) fn start<M: Method>(
        &self,
        target: &Arc<Inner>,
        method: M,
        limit: Option<Duration>,
        own: Option<Box<Baggage>>,
    ) -> Result<Started<M::Reply, M::Error>, Refusal> {
        match self.choose_way(target, Callee::of::<M>(), limit, own)? {
            Chosen::Neighbour { neighbour, deadline, baggage } => {
                let mut answer: Option<Result<M::Reply, CallError<M::Error>>> = None;
                let serial = self.next_serial();
                let mut message = Some(method.into_message(ReplyTo::below(serial)));
                let caller = Caller::Below { serial, answer: (&raw mut answer).cast(), baggage };
                let begun = neighbour.begin_here(self, Callee::of::<M>().access(), &mut message, deadline, caller);
                Ok(match (answer, begun) {
                    (Some(answer), _) => Started::Ended(answer),
                    (None, Some(Begun::Waits(call))) => Started::Waits(call),
                    (None, Some(Begun::Failed(failure))) => Started::Ended(Err((*failure).into())),
                    (None, Some(Begun::Over)) => Started::Ended(Err(CallError::Unknown(Doubt::Dropped))),
                    (None, None) => return Err(other_interface(&target.id)),
                })
            }
            Chosen::Away { call, deadline, chain } => {
                let body = Body::Typed(method.into_message(ReplyTo::call(self.id(), call)));
                self.bring::<M::Interface>(target, Envelope { body, deadline, chain });
                Ok(Started::Waits(call))
            }
        }
    }

    /// Whether a call of `callee` can begin on this stack, or goes away and is waited for.
    fn choose_way(
        &self,
        target: &Inner,
        callee: Callee,
        limit: Option<Duration>,
        own: Option<Box<Baggage>>,
    ) -> Result<Chosen, Refusal> {
        if let Some(holdback) = self.holdback() {
            holdback.check_call(target, callee)?;
        }
        let mut baggage = self.load(own)?;
        if self.intercepts {
            self.outgoing(target, callee.method.name, true, &mut baggage)?;
        }
        let deadline = self.call_deadline(limit);
        if let Some(neighbour) = self.free_neighbour(target, callee.access())
            && deadline > self.now()
            && self.calls.borrow().has_room()
        {
            self.count_near(&target.id, || true);
            return Ok(Chosen::Neighbour { neighbour, deadline, baggage });
        }
        let call = self.open_call(deadline)?;
        Ok(Chosen::Away { call, deadline, chain: Chain { link: self.link_here(), baggage } })
    }

    /// Takes a message on its way, whatever becomes of it.
    pub(super) fn bring<I: Interface>(&self, target: &Arc<Inner>, envelope: Envelope<I::Message>) {
        self.bring_mail(target, &mut Mail::<I>(&mut Some(envelope)));
    }

    fn bring_mail(&self, target: &Arc<Inner>, mail: &mut dyn AnyMail) {
        if let Err(refusal) = self.submit(target, mail) {
            turn_down(&target.id, mail, refusal);
        }
    }

    /// Sends a message that an ended activation left to the next one.
    pub(super) fn resubmit<I: Interface>(&self, id: &ActorId, envelope: Envelope<I::Message>) {
        self.bring::<I>(&Inner::untyped(id.clone()), envelope);
    }

    /// Takes a message on its way; on an error it may still be there.
    pub(super) fn submit(&self, target: &Arc<Inner>, mail: &mut dyn AnyMail) -> Result<(), Refusal> {
        #[cfg(feature = "rehearsal")]
        if self.hold_message(target, mail) {
            return Ok(());
        }
        if self.is_fenced() {
            return Err(Refusal::Fenced);
        }
        match target.route() {
            Route::Here(shard, slot) if shard == self.id() => {
                if let Some(activation) = self.activation_of(target, slot) {
                    self.count_near(&target.id, || is_awaited(mail));
                    self.hand(activation, target, mail)?;
                    if mail.form() == Form::Taken {
                        return Ok(());
                    }
                }
                target.set_route(Route::Unresolved);
            }
            Route::Here(shard, slot)
                if let Some(index) = self.sibling(shard)
                    && !self.is_cut(shard, slot) =>
            {
                self.count_out(&target.id, Place::Shard(shard), || is_awaited(mail));
                mail.post(self, index, slot, target);
                return Ok(());
            }
            // What waits for the directory came before.
            Route::There(node) if !self.is_parked(target.hash) => {
                if let Some(result) = self.submit_away(node, target, mail) {
                    return result;
                }
                target.set_route(Route::Unresolved);
            }
            _ => target.set_route(Route::Unresolved),
        }
        self.route(target, mail)
    }

    /// Takes a message to another node, where its actor was last at `known`; `None` if there is no such way.
    fn submit_away(&self, known: NodeId, target: &Arc<Inner>, mail: &mut dyn AnyMail) -> Option<Result<(), Refusal>> {
        let to = match self.next_course(target.hash) {
            Next::Held => {
                if let Some(parcel) = mail.seal(self, target) {
                    self.hold_back(parcel);
                }
                return Some(Ok(()));
            }
            Next::Straight(to) | Next::Round(to) => to,
            Next::Unknown if self.may_reach(known) => {
                self.goes_straight(target.hash, known);
                known
            }
            Next::Unknown | Next::Asks => return None,
        };
        Some(self.send_away(to, None, target, mail))
    }

    /// A slot that passes its end on to `reply`; `None` if there is no room, and who waits has been told.
    pub(crate) fn relay(&self, reply: Box<dyn AnyReply>, deadline: Timestamp, hash: u64) -> Option<CallSlot> {
        let opened = self.calls.borrow_mut().open(Waiter::Relay(reply, hash), deadline);
        opened.map_err(turn_away).ok()
    }

    /// Sends a message to another node.
    pub(crate) fn send_away(
        &self,
        to: NodeId,
        grant: Option<Grant>,
        target: &Arc<Inner>,
        mail: &mut dyn AnyMail,
    ) -> Result<(), Refusal> {
        let (form, deadline, interface) = (mail.form(), mail.deadline(), mail.interface());
        let chain = mail.chain().map(std::mem::take).unwrap_or_default();
        match form {
            Form::Typed(method) => self.write_away(to, grant, target, mail, (method, deadline, &chain)),
            Form::Wire(method) => {
                if let Some(call) = mail.take_wire() {
                    let name = interface.name(method).to_owned();
                    let (kind, kind_name) = (Some(target.id.kind), interface.kind.to_owned());
                    let route = RouteTarget { kind, kind_name, method: name, index: Some(method), offer: None };
                    let node = &self.port.node;
                    let journey = Journey { origin: node.me(), from: node.me(), hops: 0, grant };
                    let WireCall { payload, reply, .. } = call;
                    self.forward(to, grant, &target.id.key, &route, &payload, reply, deadline, &chain, journey);
                }
                Ok(())
            }
            Form::Tick => {
                mail.take_wire().into_iter().for_each(|call| refuse_reply(call.reply, Refusal::Moved));
                Ok(())
            }
            // It was for an activation that has ended.
            Form::Ended => {
                mail.clear();
                Ok(())
            }
            Form::Taken => Ok(()),
        }
    }

    /// Encodes a message that is read onto the connection to another node.
    fn write_away(
        &self,
        to: NodeId,
        grant: Option<Grant>,
        target: &Arc<Inner>,
        mail: &mut dyn AnyMail,
        (method, deadline, chain): (u16, Timestamp, &Chain),
    ) -> Result<(), Refusal> {
        let interface = mail.interface();
        let Some(reply) = mail.reply() else { return Ok(()) };
        self.count_out(&target.id, Place::Node(to), || reply.call().is_some() || reply.awaited());
        let slot = match reply.call() {
            Some(site) if site.shard == self.id() => Some(site.slot),
            _ if reply.awaited() => match self.relay(reply.take(), deadline, target.hash) {
                Some(slot) => Some(slot),
                None => {
                    mail.clear();
                    return Ok(());
                }
            },
            _ => None,
        };
        let path = self.path(&chain.link);
        let outgoing = Outgoing {
            id: slot.map(|slot| CallId { shard: self.index(), index: slot.index, generation: slot.generation }),
            origin: None,
            hops: 0,
            kind: interface.kind,
            method: interface.name(method),
            key: &target.id.key,
            deadline,
            grant,
            chain: path.as_ref(),
            baggage: chain.baggage.as_deref(),
            version: interface.version,
        };
        let sent = self.lane_call(to, &outgoing, &mut |out| mail.encode(out));
        if (sent.is_ok() || slot.is_some())
            && let Some(reply) = mail.reply()
        {
            reply.disarm();
            mail.clear();
        }
        match (sent, slot) {
            (Ok(()), Some(slot)) => self.called(target.hash, to, slot),
            (Ok(()), None) => {}
            (Err(refusal), Some(slot)) => self.complete(slot, Completion::Failed(Box::new(refusal.into()))),
            (Err(refusal), None) => return Err(refusal),
        }
        Ok(())
    }
}

/// What has become of a call.
pub(crate) enum Started<T, E> {
    Ended(Result<T, CallError<E>>),
    Waits(CallSlot),
}

/// A method that is called, its types apart.
#[derive(Clone, Copy)]
pub(crate) struct Callee {
    pub(crate) kind: &'static str,
    pub(crate) method: MethodInfo,
}

impl Callee {
    pub(super) fn of<M: Method>() -> Self {
        Self { kind: M::Interface::KIND, method: M::Interface::METHODS[usize::from(M::INDEX)] }
    }

    /// How its turns share their activation.
    pub(super) fn access(self) -> Access {
        if self.method.read { Access::Read } else { Access::Exclusive }
    }
}

/// The way that a call takes.
enum Chosen {
    /// To an activation of this shard that is free: its turn begins at once.
    Neighbour { neighbour: Rc<dyn AnyActivation>, deadline: Timestamp, baggage: Load },
    /// Elsewhere, or into a mailbox: its reply comes to this slot.
    Away { call: CallSlot, deadline: Timestamp, chain: Chain },
}

pub(super) fn other_interface(id: &ActorId) -> Refusal {
    let message = format!("kind {:?} has another interface here", id.kind.name());
    Refusal::Invalid { field: String::new(), message }
}

impl<I: Interface> AnyParcel for Parcel<I> {
    fn deliver(self: Box<Self>, shard: &Shard) {
        let Parcel { target, envelope } = *self;
        shard.bring::<I>(&target, envelope.into());
    }

    fn refuse(self: Box<Self>, refusal: Refusal) {
        refuse::<I>(&self.target.id, self.envelope.into(), refusal);
    }

    fn deadline(&self) -> Timestamp {
        self.envelope.deadline
    }

    fn id(&self) -> &ActorId {
        &self.target.id
    }

    fn hash(&self) -> u64 {
        self.target.hash
    }

    fn principal(&self) -> Option<&Principal> {
        self.envelope.chain.principal()
    }
}

pub(super) fn refuse<I: Interface>(id: &ActorId, envelope: Envelope<I::Message>, refusal: Refusal) {
    turn_down(id, &mut Mail::<I>(&mut Some(envelope)), refusal);
}

/// Tells a waiter for which the table of calls has no room.
pub(super) fn turn_away(waiter: Waiter) {
    if let Waiter::Relay(reply, _) = waiter {
        reply.finish(refused(Calls::full()));
    }
}

pub(crate) fn refuse_reply(reply: WireReply, refusal: Refusal) {
    reply.finish(Completion::Failed(Box::new(refusal.into())));
}
