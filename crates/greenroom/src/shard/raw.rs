//! Messages that come as bytes: from other nodes and from gateways.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use greenroom_protocols::directory::Grant;
use greenroom_protocols::node::NodeId;
use greenroom_protocols::versions::Offer;
use greenroom_security::principal::Principal;
use greenroom_wire::{CallId, Status};
use greenroom_world::Timestamp;

use super::activation::AnyActivation;
use super::calls::{Completion, Waiter};
use super::chain::{Chain, PortableChain};
use super::drops::post;
use super::envelope::{IncomingCall, WireCall};
use super::outgoing::Outgoing;
use super::routes::MARK;
use super::sampling::Place;
use super::submit::{AnyParcel, refuse_reply, turn_away};
use super::{Shard, Slot};
use crate::actor::error::{Doubt, Refusal};
use crate::actor::key::{ActorId, Kind, stable_hash};
use crate::actor::reply::{AnyReply, CallName, CallSite, Forward, ReplyForm, RuntimeEnd, Watcher, WireReply};
use crate::here::Here;
use crate::pids::key::is_reserved;

/// A message as it came from another node or a gateway.
pub(crate) struct RawParcel {
    pub(crate) id: ActorId,
    pub(crate) route: Arc<RouteTarget>,
    pub(crate) payload: Bytes,
    pub(crate) reply: WireReply,
    pub(crate) deadline: Timestamp,
    pub(crate) chain: PortableChain,
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
    /// Which callers are served here, if this node hosts the kind.
    pub(crate) offer: Option<Offer>,
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
    /// The actor of this shard whose turn sends it from a host.
    pub(crate) sender: Option<&'a ActorId>,
}

impl Journey {
    /// Of a message that somebody on this node sends.
    pub(crate) fn begins_at(node: &Here) -> Self {
        Self { origin: node.me(), from: node.me(), hops: 0, grant: None }
    }
}

impl RawCall<'_> {
    /// Makes the message one that may wait, or leave `shard`.
    pub(super) fn into_parcel(self, shard: &Shard, id: ActorId) -> RawParcel {
        let Self { route, payload, reply, deadline, chain, journey, .. } = self;
        let payload = Bytes::copy_from_slice(payload);
        RawParcel { id, route: route.clone(), payload, reply, deadline, chain: shard.portable(chain), journey }
    }
}

impl Shard {
    /// Takes a message that came as bytes on its way.
    pub(crate) fn submit_raw(&self, call: RawCall<'_>) {
        // The kind's first actor may have been spawned after the route was defined.
        let spawned = || is_reserved(call.key).then(|| Kind::known(&call.route.kind_name)).flatten();
        let Some(kind) = call.route.kind.or_else(spawned) else {
            return refuse_reply(call.reply, self.port.node.unknown_kind(&call.route.kind_name));
        };
        let hash = stable_hash(&call.route.kind_name, call.key);
        let known = self.recent.borrow().find(hash);
        let keeps_round = || call.journey.from == self.port.node.me() && self.keeps_to_round(hash);
        if let Some(slot) = known.filter(|_| !keeps_round()) {
            let found = self.activation(slot);
            if let Some(activation) = found.filter(|found| found.id().kind == kind && &*found.id().key == call.key) {
                return self.offer_raw(activation, call, kind, hash);
            }
        }
        self.locate_raw(call, kind, hash);
    }

    /// Sends a message that came as bytes, and that an ended activation left, to the next one.
    pub(super) fn resubmit_raw(&self, id: &ActorId, method: &str, call: WireCall, deadline: Timestamp, chain: Chain) {
        let node = &self.port.node;
        let route = Arc::new(node.kinds().route(id.kind.name(), method));
        let WireCall { payload, reply, .. } = call;
        let (journey, sender) = (Journey::begins_at(node), None);
        self.submit_raw(RawCall {
            key: &id.key,
            route: &route,
            payload: &payload,
            reply,
            deadline,
            chain,
            journey,
            sender,
        });
    }

    /// Remembers where messages that come as bytes found the actor.
    pub(crate) fn remember(&self, hash: u64, slot: Slot) {
        self.recent.borrow_mut().insert(hash, slot);
    }

    pub(crate) fn offer_raw(&self, activation: Rc<dyn AnyActivation>, call: RawCall<'_>, kind: Kind, hash: u64) {
        let (offer, method) = self.port.node.kinds().meant(kind, call.route);
        if method.is_none() && call.route.method == MARK {
            return call.reply.finish(Completion::Wire { status: Status::Ok, payload: Bytes::new(), from: None });
        }
        if !offer.serves(call.chain.wanted()) {
            return self.misfit(&activation, call, kind, hash, offer);
        }
        let Some(method) = method else {
            let refusal = self.no_such_method(&call, offer);
            return refuse_reply(call.reply, refusal);
        };
        self.count_raw(call.sender, activation.id(), call.reply.is_awaited(), || self.whence(&call));
        let RawCall { key, route, payload, reply, deadline, chain, journey, sender } = call;
        let incoming = IncomingCall { method, payload, reply, deadline, chain: chain.clone() };
        match activation.offer_wire(self, incoming) {
            Ok(()) => {}
            Err((Some(refusal), reply)) => {
                let id = ActorId::unchecked(kind, key);
                let call = RawCall { key, route, payload, reply, deadline, chain, journey, sender };
                self.turn_down(&id, call, refusal);
            }
            // It has just ended: to its next activation.
            Err((None, reply)) => {
                let call = RawCall { key, route, payload, reply, deadline, chain, journey, sender };
                self.locate_raw(call, kind, hash);
            }
        }
    }

    /// Where a message that came as bytes is from.
    fn whence(&self, call: &RawCall<'_>) -> Place {
        match (call.journey.origin, call.chain.baggage.as_deref().and_then(|baggage| baggage.caller)) {
            (_, Some(cluster)) => Place::Cluster(cluster),
            (origin, None) if origin == self.port.node.me() => Place::Outside,
            (origin, None) => Place::Node(origin),
        }
    }

    pub(super) fn locate_raw(&self, call: RawCall<'_>, kind: Kind, hash: u64) {
        if !self.fence_open() {
            return refuse_reply(call.reply, Refusal::Fenced);
        }
        match ActorId::new(kind, call.key) {
            Ok(id) => self.route_raw(call, id, hash),
            Err(refusal) => refuse_reply(call.reply, refusal),
        }
    }

    /// Sends a message on to another node.
    pub(super) fn forward_call(&self, to: NodeId, grant: Option<Grant>, call: RawCall<'_>) {
        let RawCall { key, route, payload, reply, deadline, chain, journey, .. } = call;
        self.forward(to, grant, key, route, payload, reply, deadline, &chain, journey);
    }

    /// Sends a message that came as bytes on to another node, which answers to where it came from.
    #[expect(clippy::too_many_arguments, reason = "the parts of a call, taken apart by both callers already")]
    pub(crate) fn forward(
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
                let hash = stable_hash(&route.kind_name, key);
                let opened = self.calls.borrow_mut().open(Waiter::Relay(reply, hash), deadline);
                match opened {
                    Ok(slot) => {
                        let id = CallId { shard: self.index(), index: slot.index, generation: slot.generation };
                        (Some(id), None, Some((hash, slot)))
                    }
                    Err(waiter) => return turn_away(waiter),
                }
            }
        };
        let path = self.path(&chain.link);
        let outgoing = Outgoing {
            id,
            origin: origin.filter(|origin| *origin != self.port.node.me()),
            hops: journey.hops + 1,
            kind: &route.kind_name,
            method: &route.method,
            key,
            deadline,
            grant,
            chain: path.as_ref(),
            baggage: chain.baggage.as_deref(),
            version: chain.wanted(),
        };
        let sent = self.lane_call(to, &outgoing, &mut |out| {
            out.extend_from_slice(payload);
            Ok(())
        });
        match (sent, slot, id) {
            (Ok(()), Some((hash, slot)), _) => self.called(hash, to, slot),
            (Ok(()), None, Some(id)) => {
                if let Some(origin) = origin {
                    self.remember_forwarded(to, origin, id);
                }
            }
            (Err(refusal), Some((_, slot)), _) => self.complete(slot, Completion::Failed(Box::new(refusal.into()))),
            (Err(refusal), None, Some(id)) => {
                if let Some(origin) = origin {
                    refuse_reply(WireReply::node(origin, id, ReplyForm::PLAIN), refusal);
                }
            }
            _ => {}
        }
    }
}

impl AnyParcel for RawParcel {
    fn deliver(self: Box<Self>, shard: &Shard) {
        let RawParcel { id, route, payload, reply, deadline, chain, journey, .. } = *self;
        let (key, chain) = (&*id.key, chain.into());
        shard.submit_raw(RawCall {
            key,
            route: &route,
            payload: &payload,
            reply,
            deadline,
            chain,
            journey,
            sender: None,
        });
    }

    fn refuse(self: Box<Self>, refusal: Refusal) {
        if !self.reply.is_awaited() {
            post(&self.id, &self.route.method, &refusal);
        }
        refuse_reply(self.reply, refusal);
    }

    fn deadline(&self) -> Timestamp {
        self.deadline
    }

    fn id(&self) -> &ActorId {
        &self.id
    }

    fn hash(&self) -> u64 {
        self.id.stable_hash()
    }

    fn principal(&self) -> Option<&Principal> {
        self.chain.principal()
    }
}

impl AnyReply for WireReply {
    fn call(&self) -> Option<CallSite> {
        None
    }

    fn key(&self) -> CallName {
        CallName(WireReply::key(self))
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

    /// Replies are held where their types are known.
    fn hold(&mut self) {}

    /// Turns answer where their types are known.
    fn watch(&mut self, _: Watcher) {}

    fn finish(self: Box<Self>, end: RuntimeEnd) {
        let completion = match end.0 {
            // Only who knows the types can write them down; typed ends never come here.
            Completion::Value(_) => Completion::Failed(Box::new(Doubt::Dropped.into())),
            other => other,
        };
        WireReply::finish(*self, completion);
    }
}

/// Nodes that may forward a message.
const HOPS_MAX: u8 = 4;
