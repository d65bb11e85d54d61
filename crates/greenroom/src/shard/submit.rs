//! The way of a message: to an activation of this shard, to another shard, or to another node.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use greenroom_protocols::directory::Grant;
use greenroom_protocols::node::NodeId;
use greenroom_wire::CallId;
use greenroom_world::Timestamp;

use super::activation::{AnyActivation, Body, Envelope, IncomingCall};
use super::calls::{Calls, Completion, Waiter};
use super::lanes::Outgoing;
use super::turns::Chain;
use super::{Item, Shard, ShardId, Slot};
use crate::actor::error::{Doubt, Refusal};
use crate::actor::interface::Interface;
use crate::actor::key::{ActorId, Kind};
use crate::actor::reference::{Inner, Route};
use crate::actor::reply::{AnyReply, Forward, RuntimeEnd, WireReply, refused};
use crate::cluster::directory::{Asker, Location};

/// A message on its way, its type apart: what shards hand to each other, and what waits for the directory.
pub(crate) trait AnyParcel: Send {
    /// Goes on from `shard`.
    fn deliver(self: Box<Self>, shard: &Shard);

    /// Ends here.
    fn refuse(self: Box<Self>, refusal: Refusal);

    /// When it is of no use any more.
    fn deadline(&self) -> Timestamp;
}

/// A message of a known interface.
pub(crate) struct Parcel<I: Interface> {
    pub(crate) target: Arc<Inner>,
    pub(crate) envelope: Envelope<I::Message>,
}

/// A message as it came from another node or a gateway.
pub(crate) struct RawParcel {
    pub(crate) id: ActorId,
    pub(crate) route: Arc<RouteTarget>,
    pub(crate) payload: Bytes,
    pub(crate) reply: WireReply,
    pub(crate) deadline: Timestamp,
    pub(crate) chain: Chain,
    pub(crate) journey: Journey,
}

/// What a raw message asks for.
#[derive(Debug)]
pub(crate) struct RouteTarget {
    /// `None` for a kind that this process has never met.
    pub(crate) kind: Option<Kind>,
    pub(crate) kind_name: String,
    pub(crate) method: String,
    /// The method's index, if this node hosts the kind; `None` also if the kind has no such method.
    pub(crate) index: Option<u16>,
}

/// How a message came here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Journey {
    /// The node that asked first.
    pub(crate) origin: NodeId,
    /// The node that sent it here.
    pub(crate) from: NodeId,
    /// Nodes it was forwarded by.
    pub(crate) hops: u8,
    /// The directory's word that came along.
    pub(crate) grant: Option<Grant>,
}

/// A raw message before it is known whether it must be copied.
pub(crate) struct RawCall<'a> {
    pub(crate) key: &'a str,
    pub(crate) route: &'a Arc<RouteTarget>,
    pub(crate) payload: &'a [u8],
    pub(crate) reply: WireReply,
    pub(crate) deadline: Timestamp,
    pub(crate) chain: Chain,
    pub(crate) journey: Journey,
}

/// Where messages that came as bytes went last, by the actors' hashes: saves the directory's lock.
pub(super) struct Recent(Vec<(u64, Slot)>);

impl Default for Recent {
    fn default() -> Self {
        Self(vec![(0, Slot { index: u32::MAX, generation: 0 }); RECENT_LEN])
    }
}

/// Where other nodes said that one-way messages had better go, by the actors' hashes. Wrong ones cost a hop.
pub(super) struct Hints(Vec<(u64, NodeId)>);

impl Default for Hints {
    fn default() -> Self {
        Self(vec![(0, NodeId(0)); RECENT_LEN])
    }
}

impl Hints {
    pub(super) fn insert(&mut self, hash: u64, node: NodeId) {
        self.0[hash as usize & (RECENT_LEN - 1)] = (hash, node);
    }

    fn find(&self, hash: u64) -> Option<NodeId> {
        let (known, node) = self.0[hash as usize & (RECENT_LEN - 1)];
        (known == hash && node != NodeId(0)).then_some(node)
    }
}

/// The stateless workers of this shard.
#[derive(Default)]
pub(super) struct Workers(BTreeMap<ActorId, Vec<Slot>>);

impl Workers {
    pub(super) fn remove(&mut self, id: &ActorId, slot: Slot) {
        if let Some(slots) = self.0.get_mut(id) {
            slots.retain(|known| *known != slot);
            if slots.is_empty() {
                self.0.remove(id);
            }
        }
    }
}

impl Shard {
    /// Whether messages to `target` may go by this shard: its reference is bound to this node, or to none.
    pub(crate) fn serves(&self, target: &Inner) -> bool {
        target.port.as_ref().is_none_or(|port| Arc::ptr_eq(&port.node, &self.port.node))
    }

    /// Makes a call whose reply goes to a slot of this shard.
    pub(crate) fn call<I: Interface>(&self, target: &Arc<Inner>, message: I::Message, deadline: Timestamp) {
        let envelope = Envelope { body: Body::Typed(message), deadline, chain: self.chain_here() };
        let mut parcel = Some(envelope);
        if let Err(refusal) = self.submit::<I>(target, &mut parcel) {
            refuse::<I>(parcel, refusal);
        }
    }

    /// Sends a one-way message.
    pub(crate) fn send<I: Interface>(&self, target: &Arc<Inner>, message: I::Message) -> Result<(), Refusal> {
        let envelope = Envelope { body: Body::Typed(message), deadline: Timestamp::NEVER, chain: Chain::None };
        let result = self.submit::<I>(target, &mut Some(envelope));
        if result.is_err() {
            self.gauges().count_refused_send();
        }
        result
    }

    /// Sends a message that an ended activation left to the next one.
    pub(super) fn resubmit<I: Interface>(&self, id: &ActorId, envelope: Envelope<I::Message>) {
        let mut parcel = Some(envelope);
        if let Err(refusal) = self.submit::<I>(&Inner::untyped(id.clone()), &mut parcel) {
            refuse::<I>(parcel, refusal);
        }
    }

    /// Takes the message out of `parcel` and on its way; on an error it may still be there.
    pub(super) fn submit<I: Interface>(
        &self,
        target: &Arc<Inner>,
        parcel: &mut Option<Envelope<I::Message>>,
    ) -> Result<(), Refusal> {
        if !self.fence_open() {
            return Err(Refusal::Fenced);
        }
        match target.route() {
            Route::Here(shard, slot) if shard == self.id() => {
                if let Some(activation) = self.activation(slot).filter(|found| *found.id() == target.id) {
                    activation.offer(self, parcel)?;
                    if parcel.is_none() {
                        return Ok(());
                    }
                }
                target.set_route(Route::Unresolved);
            }
            Route::Here(shard, _) if self.port.node.shards().iter().any(|port| port.id == shard) => {
                self.post_parcel::<I>(shard, target, parcel);
                return Ok(());
            }
            Route::There(node) if self.has_lane(node) || self.port.node.is_member(node) => {
                return self.send_away::<I>(node, None, target, parcel);
            }
            _ => target.set_route(Route::Unresolved),
        }
        self.locate_and_submit::<I>(target, parcel)
    }

    fn locate_and_submit<I: Interface>(
        &self,
        target: &Arc<Inner>,
        parcel: &mut Option<Envelope<I::Message>>,
    ) -> Result<(), Refusal> {
        let node = &self.port.node;
        if target.id.key.is_empty() || target.id.key.len() > crate::actor::key::KEY_LEN_MAX {
            return Err(crate::actor::key::invalid_key(&target.id.key));
        }
        if node.kinds().workers(target.id.kind) > 0 {
            let worker = self.worker(&target.id)?;
            return worker.offer(self, parcel);
        }
        let asker = Asker { origin: node.me(), from: node.me(), shard: Some(self.index()) };
        match node.locate(&target.id, target.hash, asker, None)? {
            Location::Here { shard, slot: Some(slot), .. } => {
                target.set_route(Route::Here(shard, slot));
                if shard == self.id() {
                    if let Some(activation) = self.activation(slot) {
                        activation.offer(self, parcel)?;
                    }
                    return if parcel.is_none() { Ok(()) } else { Err(Refusal::Moved) };
                }
                self.post_parcel::<I>(shard, target, parcel);
            }
            Location::Here { shard, slot: None, epoch } if shard == self.id() => {
                let activation = self.activate(target.id.clone(), epoch)?;
                target.set_route(Route::Here(shard, activation.slot()));
                activation.offer(self, parcel)?;
                return if parcel.is_none() { Ok(()) } else { Err(Refusal::Moved) };
            }
            Location::Here { shard, slot: None, .. } => self.post_parcel::<I>(shard, target, parcel),
            Location::There { node: owner, grant: None } => {
                let hint = self.hints.borrow().find(target.hash).filter(|hint| node.is_member(*hint));
                return self.send_away::<I>(hint.unwrap_or(owner), None, target, parcel);
            }
            Location::There { node, grant } => return self.send_away::<I>(node, grant, target, parcel),
            Location::Wait => {
                if let Some(envelope) = parcel.take() {
                    self.park(Box::new(Parcel::<I> { target: target.clone(), envelope: self.portable::<I>(envelope) }));
                }
            }
        }
        Ok(())
    }

    fn post_parcel<I: Interface>(&self, to: ShardId, target: &Arc<Inner>, parcel: &mut Option<Envelope<I::Message>>) {
        if let Some(envelope) = parcel.take() {
            let envelope = self.portable::<I>(envelope);
            self.post(to, Item::Parcel(Box::new(Parcel::<I> { target: target.clone(), envelope })));
        }
    }

    /// The envelope with a chain that means the same elsewhere.
    fn portable<I: Interface>(&self, mut envelope: Envelope<I::Message>) -> Envelope<I::Message> {
        if let Chain::Turn(_) = envelope.chain {
            let path = self.path(&envelope.chain);
            envelope.chain = if path.is_empty() { Chain::None } else { Chain::Path(path) };
        }
        envelope
    }

    /// Sends a message to another node.
    fn send_away<I: Interface>(
        &self,
        to: NodeId,
        grant: Option<Grant>,
        target: &Arc<Inner>,
        parcel: &mut Option<Envelope<I::Message>>,
    ) -> Result<(), Refusal> {
        let node = &self.port.node;
        let Some(Envelope { body, deadline, chain }) = parcel.take() else { return Ok(()) };
        let mut message = match body {
            Body::Typed(message) => message,
            Body::Wire(call) => {
                let name = I::METHODS.get(usize::from(call.method)).map_or("", |method| method.name);
                let (kind, kind_name) = (Some(target.id.kind), I::KIND.to_owned());
                let route = RouteTarget { kind, kind_name, method: name.to_owned(), index: Some(call.method) };
                let journey = Journey { origin: node.me(), from: node.me(), hops: 0, grant };
                self.forward(to, grant, &target.id.key, &route, &call.payload, call.reply, deadline, &chain, journey);
                return Ok(());
            }
        };
        let reply = I::reply(&mut message);
        let slot = match reply.call() {
            Some(site) if site.shard == self.id() => Some(site.slot),
            _ if reply.awaited() => {
                let opened = self.calls.borrow_mut().open(Waiter::Relay(reply.take()), deadline);
                match opened {
                    Ok(slot) => Some(slot),
                    Err(waiter) => {
                        turn_away(waiter);
                        return Ok(());
                    }
                }
            }
            _ => None,
        };
        let method = I::METHODS[usize::from(I::method(&message))].name;
        let path = self.path(&chain);
        let outgoing = Outgoing {
            id: slot.map(|slot| CallId { shard: self.index(), index: slot.index, generation: slot.generation }),
            origin: None,
            hops: 0,
            kind: I::KIND,
            method,
            key: &target.id.key,
            deadline,
            grant,
            chain: &path,
        };
        let sent = self.lane_call(to, &outgoing, |out| I::encode(&message, out));
        let reply = I::reply(&mut message);
        match sent {
            Ok(()) => {
                reply.disarm();
                if let Some(slot) = slot {
                    self.calls.borrow_mut().sent_to(slot, to);
                }
                Ok(())
            }
            Err(refusal) => match slot {
                Some(slot) => {
                    reply.disarm();
                    self.complete(slot, Completion::Failed(Box::new(refusal.into())));
                    Ok(())
                }
                None => Err(refusal),
            },
        }
    }

    // Messages that come as bytes.

    /// Takes a message that came as bytes on its way.
    pub(crate) fn submit_raw(&self, call: RawCall<'_>) {
        let Some(kind) = call.route.kind else {
            return refuse_reply(call.reply, self.port.node.unknown_kind(&call.route.kind_name));
        };
        let hash = crate::actor::key::stable_hash(&call.route.kind_name, call.key);
        let at = (hash as usize) & (RECENT_LEN - 1);
        let (known, slot) = self.recent.borrow().0[at];
        if known == hash {
            let found = self.activation(slot);
            if let Some(activation) = found.filter(|found| found.id().kind == kind && &*found.id().key == call.key) {
                return self.offer_raw(activation, call, kind, hash);
            }
        }
        self.locate_and_submit_raw(call, kind, hash);
    }

    fn offer_raw(&self, activation: Rc<dyn AnyActivation>, call: RawCall<'_>, kind: Kind, hash: u64) {
        let Some(method) = call.route.index else {
            return refuse_reply(call.reply, self.port.node.kinds().unknown_method(call.route));
        };
        let RawCall { key, route, payload, reply, deadline, chain, journey } = call;
        let incoming = IncomingCall { method, payload, reply, deadline, chain: chain.clone() };
        match activation.offer_wire(self, incoming) {
            Ok(()) => {}
            Err((Some(refusal), reply)) => refuse_reply(reply, refusal),
            // It has just ended: to its next activation.
            Err((None, reply)) => {
                let call = RawCall { key, route, payload, reply, deadline, chain, journey };
                self.locate_and_submit_raw(call, kind, hash);
            }
        }
    }

    fn locate_and_submit_raw(&self, call: RawCall<'_>, kind: Kind, hash: u64) {
        let node = &self.port.node;
        if !self.fence_open() {
            return refuse_reply(call.reply, Refusal::Fenced);
        }
        if call.key.is_empty() || call.key.len() > crate::actor::key::KEY_LEN_MAX {
            return refuse_reply(call.reply, crate::actor::key::invalid_key(call.key));
        }
        let id = ActorId { kind, key: call.key.into() };
        if node.kinds().workers(kind) > 0 {
            return match self.worker(&id) {
                Ok(worker) => self.offer_raw(worker, call, kind, hash),
                Err(refusal) => refuse_reply(call.reply, refusal),
            };
        }
        let Journey { origin, from, .. } = call.journey;
        let asker = Asker { origin, from, shard: Some(self.index()) };
        match node.locate(&id, hash, asker, call.journey.grant) {
            Err(refusal) => refuse_reply(call.reply, refusal),
            Ok(Location::Here { shard, slot, epoch }) if shard == self.id() => {
                let activation = match slot {
                    Some(slot) => self.activation(slot).ok_or(Refusal::Moved),
                    None => self.activate(id, epoch),
                };
                match activation {
                    Ok(activation) => {
                        let at = (hash as usize) & (RECENT_LEN - 1);
                        self.recent.borrow_mut().0[at] = (hash, activation.slot());
                        self.offer_raw(activation, call, kind, hash);
                    }
                    Err(refusal) => refuse_reply(call.reply, refusal),
                }
            }
            Ok(Location::Here { shard, .. }) => {
                let parcel = self.raw_parcel(call, id);
                self.post(shard, Item::Parcel(Box::new(parcel)));
            }
            Ok(Location::There { node: to, grant }) => {
                let RawCall { key, route, payload, reply, deadline, chain, journey } = call;
                if journey.hops == 0 && journey.from != node.me() && !reply.is_awaited() {
                    self.lane_hint(journey.from, hash, to);
                }
                self.forward(to, grant, key, route, payload, reply, deadline, &chain, journey);
            }
            Ok(Location::Wait) => {
                let parcel = self.raw_parcel(call, id);
                self.park(Box::new(parcel));
            }
        }
    }

    fn raw_parcel(&self, call: RawCall<'_>, id: ActorId) -> RawParcel {
        let RawCall { route, payload, reply, deadline, chain, journey, .. } = call;
        let payload = Bytes::copy_from_slice(payload);
        RawParcel { id, route: route.clone(), payload, reply, deadline, chain, journey }
    }

    /// Sends a message that came as bytes on to another node, which answers to where it came from.
    #[expect(clippy::too_many_arguments, reason = "the parts of a call, taken apart by both callers already")]
    fn forward(
        &self,
        to: NodeId,
        grant: Option<Grant>,
        key: &str,
        route: &RouteTarget,
        payload: &[u8],
        reply: WireReply,
        deadline: Timestamp,
        chain: &Chain,
        journey: Journey,
    ) {
        if journey.hops >= HOPS_MAX {
            return refuse_reply(reply, Refusal::Moved);
        }
        let (id, origin, slot) = match reply.forward() {
            Forward::Nobody => (None, Some(journey.origin), None),
            Forward::Origin(origin, id) => (Some(id), Some(origin), None),
            Forward::Relay(reply) => {
                let opened = self.calls.borrow_mut().open(Waiter::Relay(reply), deadline);
                match opened {
                    Ok(slot) => {
                        let id = CallId { shard: self.index(), index: slot.index, generation: slot.generation };
                        (Some(id), None, Some(slot))
                    }
                    Err(waiter) => return turn_away(waiter),
                }
            }
        };
        let path = self.path(chain);
        let outgoing = Outgoing {
            id,
            origin: origin.filter(|origin| *origin != self.port.node.me()),
            hops: journey.hops + 1,
            kind: &route.kind_name,
            method: &route.method,
            key,
            deadline,
            grant,
            chain: &path,
        };
        let sent = self.lane_call(to, &outgoing, |out| {
            out.extend_from_slice(payload);
            Ok(())
        });
        match (sent, slot, id) {
            (Ok(()), Some(slot), _) => self.calls.borrow_mut().sent_to(slot, to),
            (Ok(()), None, Some(id)) => {
                if let Some(origin) = origin {
                    self.remember_forwarded(to, origin, id);
                }
            }
            (Err(refusal), Some(slot), _) => self.complete(slot, Completion::Failed(Box::new(refusal.into()))),
            (Err(refusal), None, Some(id)) => {
                if let Some(origin) = origin {
                    refuse_reply(WireReply::node(origin, id, greenroom_wire::codec::Codec::MessagePack), refusal);
                }
            }
            _ => {}
        }
    }

    // Stateless workers.

    /// A worker of this shard for `id`: an idle one, a new one, or the one with the shortest queue.
    fn worker(&self, id: &ActorId) -> Result<Rc<dyn AnyActivation>, Refusal> {
        let node = &self.port.node;
        let max = usize::from(node.kinds().workers(id.kind)).div_ceil(node.shards().len());
        let slots = self.workers.borrow().0.get(id).cloned().unwrap_or_default();
        let workers: Vec<_> = slots.into_iter().filter_map(|slot| self.activation(slot)).collect();
        if let Some(idle) = workers.iter().find(|worker| !worker.busy() && worker.waiting() == 0) {
            return Ok(idle.clone());
        }
        if workers.len() < max {
            let worker = self.activate(id.clone(), node.next_worker_epoch())?;
            self.workers.borrow_mut().0.entry(id.clone()).or_default().push(worker.slot());
            return Ok(worker);
        }
        workers.into_iter().min_by_key(|worker| worker.waiting()).ok_or(Refusal::Stopping)
    }
}

impl<I: Interface> AnyParcel for Parcel<I> {
    fn deliver(self: Box<Self>, shard: &Shard) {
        let Parcel { target, envelope } = *self;
        let mut parcel = Some(envelope);
        if let Err(refusal) = shard.submit::<I>(&target, &mut parcel) {
            refuse::<I>(parcel, refusal);
        }
    }

    fn refuse(self: Box<Self>, refusal: Refusal) {
        refuse::<I>(Some(self.envelope), refusal);
    }

    fn deadline(&self) -> Timestamp {
        self.envelope.deadline
    }
}

impl AnyParcel for RawParcel {
    fn deliver(self: Box<Self>, shard: &Shard) {
        let RawParcel { id, route, payload, reply, deadline, chain, journey, .. } = *self;
        shard.submit_raw(RawCall { key: &id.key, route: &route, payload: &payload, reply, deadline, chain, journey });
    }

    fn refuse(self: Box<Self>, refusal: Refusal) {
        refuse_reply(self.reply, refusal);
    }

    fn deadline(&self) -> Timestamp {
        self.deadline
    }
}

fn refuse<I: Interface>(parcel: Option<Envelope<I::Message>>, refusal: Refusal) {
    match parcel.map(|envelope| envelope.body) {
        Some(Body::Typed(mut message)) => I::reply(&mut message).take().finish(refused(refusal)),
        Some(Body::Wire(call)) => refuse_reply(call.reply, refusal),
        None => {}
    }
}

/// Tells a waiter for which the table of calls has no room.
fn turn_away(waiter: Waiter) {
    if let Waiter::Relay(reply) = waiter {
        reply.finish(refused(Calls::full()));
    }
}

pub(super) fn refuse_reply(reply: WireReply, refusal: Refusal) {
    reply.finish(Completion::Failed(Box::new(refusal.into())));
}

impl AnyReply for WireReply {
    fn call(&self) -> Option<crate::actor::reply::CallSite> {
        None
    }

    fn awaited(&self) -> bool {
        self.is_awaited()
    }

    fn take(&mut self) -> Box<dyn AnyReply> {
        Box::new(std::mem::replace(self, WireReply::nobody()))
    }

    fn disarm(&mut self) {
        *self = WireReply::nobody();
    }

    fn finish(self: Box<Self>, end: RuntimeEnd) {
        let completion = match end.0 {
            // Only who knows the types can write them down; typed ends never come here.
            Completion::Value(_) => Completion::Failed(Box::new(Doubt::Dropped.into())),
            other => other,
        };
        WireReply::finish(*self, completion);
    }
}

/// Slots of the cache of recent activations; a power of two.
const RECENT_LEN: usize = 4096;
/// Nodes that may forward a message.
const HOPS_MAX: u8 = 4;
