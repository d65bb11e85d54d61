//! Messages on their way to who finds their actors: those of known types, and those that came as bytes.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use greenroom_protocols::directory::{Epoch, Grant};
use greenroom_protocols::node::NodeId;
use greenroom_world::Timestamp;

use super::activation::AnyActivation;
use super::baggage::Baggage;
use super::chain::{Chain, Link};
use super::mail::{AnyMail, Described, Form, is_awaited, wanted, written};
use super::raw::{Journey, RawCall, RawParcel};
use super::sampling::Place;
use super::submit::{AnyParcel, refuse_reply};
use super::{Item, Shard, ShardId, Slot};
use crate::actor::error::Refusal;
use crate::actor::key::{ActorId, check};
use crate::actor::reference::{Inner, Route};
use crate::actor::reply::{AnyReply, CallSite, ReplyForm, WireReply};
use crate::here::Here;
use crate::here::location::Passage;

/// How messages find the actors of some kinds, or of some keys. The parts of a node have them.
pub(crate) trait Way {
    /// Whether a message goes this way.
    fn takes(&self, node: &Here, message: &dyn Underway) -> bool;

    /// Takes it on its way; on an error it may still be there.
    fn send(&self, shard: &Shard, message: &mut dyn Underway) -> Result<(), Refusal>;

    /// Lets an activation go from one shard of its node to another: from now on messages find it passing. False if it is none
    /// that goes this way, or not there any more.
    fn pass(&self, id: &ActorId, epoch: Epoch, passage: Passage, to: ShardId) -> bool {
        let _ = (id, epoch, passage, to);
        false
    }

    /// Hears that nothing comes by way of its old shard any more.
    fn passed(&self, id: &ActorId, epoch: Epoch, passage: Passage, at: (ShardId, Slot)) {
        let _ = (id, epoch, passage, at);
    }

    /// The shard of this node that has an actor or gets it, and its slot there, unless it is passing.
    fn place(&self, id: &ActorId) -> Option<(ShardId, Option<Slot>)> {
        let _ = id;
        None
    }
}

/// A message whose actor is to be found. It is here until somebody has taken it.
pub(crate) trait Underway {
    fn id(&self) -> &ActorId;

    /// The hash of the actor that it is for.
    fn hash(&self) -> u64;

    /// What its sender knows of the actor's interface; `None` if it came as bytes.
    fn interface(&self) -> Option<&'static Described>;

    /// The actor of this shard whose turn sends it from a host.
    fn sender(&self) -> Option<&ActorId> {
        None
    }

    /// Whether its sender made up a key that only the runtime gives.
    fn is_forged(&self) -> bool;

    /// The version of the interface that its caller speaks.
    fn wanted(&mut self) -> u16;

    /// Whether somebody waits for its end.
    fn is_awaited(&mut self) -> bool;

    /// Returns the callers that wait for its turn.
    fn callers(&mut self) -> Link;

    /// How it came to this node.
    fn journey(&self, node: &Here) -> Journey;

    /// Remembers where its actor is.
    fn found(&self, shard: &Shard, at: ShardId, slot: Slot);

    /// Lets an activation of this shard have it.
    ///
    /// # Errors
    /// [`Refusal::Moved`]: the activation has ended. Or why it does not take it.
    fn offer(&mut self, shard: &Shard, activation: Rc<dyn AnyActivation>) -> Result<(), Refusal>;

    /// Sends it to another node.
    fn send_to(&mut self, shard: &Shard, to: NodeId, grant: Option<Grant>) -> Result<(), Refusal>;

    /// Takes it out, into a box of its own.
    fn sealed(&mut self, shard: &Shard) -> Option<Box<dyn AnyParcel>>;

    /// Takes it out, as it came or would come from another node; `None` if it was none that leaves its node.
    fn written(&mut self, shard: &Shard) -> Result<Option<RawParcel>, Refusal>;

    /// Takes it apart, the reply as it is; `None` if it was none that leaves its node.
    fn opened(&mut self) -> Result<Option<Opened>, Refusal>;
}

/// What a message says.
pub(crate) struct Opened {
    pub(crate) method: Arc<str>,
    pub(crate) arguments: Bytes,
    /// Whoever waits for the reply.
    pub(crate) reply: Option<Box<dyn AnyReply>>,
    pub(crate) deadline: Timestamp,
    pub(crate) chain: Chain,
}

impl Shard {
    /// Lets who finds the actor of a message of known types take it on its way; on an error it may still be there.
    pub(super) fn route(&self, target: &Arc<Inner>, mail: &mut dyn AnyMail) -> Result<(), Refusal> {
        check(&target.id.key)?;
        self.find_way(&mut Typed { target, mail })
    }

    /// The same, of a message that came as bytes.
    pub(super) fn route_raw(&self, call: RawCall<'_>, id: ActorId, hash: u64) {
        let mut message = Raw { id, hash, call: Some(call) };
        let result = self.find_way(&mut message);
        if let (Err(refusal), Raw { id, call: Some(call), .. }) = (result, message) {
            self.turn_down(&id, call, refusal);
        }
    }

    /// Lets an activation of this shard have a message of known types: as bytes, if the actor knows its interface by those alone.
    pub(super) fn hand(
        &self,
        activation: Rc<dyn AnyActivation>,
        target: &Arc<Inner>,
        mail: &mut dyn AnyMail,
    ) -> Result<(), Refusal> {
        let offered = activation.clone().offer(self, mail.envelope());
        match (offered, mail.form()) {
            (Err(Refusal::Invalid { .. }), Form::Typed(_)) => {
                if let Some(parcel) = (Typed { target, mail }).written(self)? {
                    let RawParcel { id, route, payload, reply, deadline, chain, journey } = parcel;
                    let (key, chain, sender) = (&*id.key, chain.into(), None);
                    let call =
                        RawCall { key, route: &route, payload: &payload, reply, deadline, chain, journey, sender };
                    self.offer_raw(activation, call, id.kind, target.hash);
                }
                Ok(())
            }
            (offered, _) => offered,
        }
    }

    fn find_way(&self, message: &mut dyn Underway) -> Result<(), Refusal> {
        let node = &self.port.node;
        let way = node.ways().find(|way| way.takes(node, message)).ok_or(Refusal::Recovering)?;
        way.send(self, message)
    }

    /// Hands a message to another shard of this node.
    pub(crate) fn pass_on(&self, message: &mut dyn Underway, to: ShardId) {
        // What came as bytes is counted where its actor is, by the node that it is from; for who sends it from a host here, too.
        let begins_here = message.interface().is_some();
        let awaited = message.is_awaited();
        if let Some(sender) = message.sender() {
            self.count_out_of(sender, message.id(), Place::Shard(to), awaited);
        } else if begins_here {
            self.count_out(message.id(), Place::Shard(to), || awaited);
        }
        if let Some(parcel) = message.sealed(self) {
            let from = self.id();
            self.post(to, if begins_here { Item::Passed { from, awaited, parcel } } else { Item::Parcel(parcel) });
        }
    }

    /// The reply of a message of known types, for who has only its bytes; `None` if there is no room for who waits, who is
    /// told.
    fn wire_reply(&self, reply: &mut dyn AnyReply, deadline: Timestamp, hash: u64) -> Option<WireReply> {
        if !reply.awaited() && reply.call().is_none() {
            return Some(WireReply::nobody());
        }
        let site = match reply.call() {
            Some(site) => {
                reply.disarm();
                site
            }
            None => CallSite { shard: self.id(), slot: self.relay(reply.take(), deadline, hash)? },
        };
        Some(WireReply::here(site, ReplyForm::PLAIN))
    }
}

/// A message of known types.
struct Typed<'a> {
    target: &'a Arc<Inner>,
    mail: &'a mut dyn AnyMail,
}

impl Underway for Typed<'_> {
    fn id(&self) -> &ActorId {
        &self.target.id
    }

    fn hash(&self) -> u64 {
        self.target.hash
    }

    fn interface(&self) -> Option<&'static Described> {
        Some(self.mail.interface())
    }

    fn is_forged(&self) -> bool {
        self.target.forged
    }

    fn wanted(&mut self) -> u16 {
        wanted(self.mail)
    }

    fn is_awaited(&mut self) -> bool {
        is_awaited(self.mail)
    }

    fn callers(&mut self) -> Link {
        self.mail.chain().map(|chain| chain.link.clone()).unwrap_or_default()
    }

    fn journey(&self, node: &Here) -> Journey {
        Journey::begins_at(node)
    }

    fn found(&self, _: &Shard, at: ShardId, slot: Slot) {
        self.target.set_route(Route::Here(at, slot));
    }

    fn offer(&mut self, shard: &Shard, activation: Rc<dyn AnyActivation>) -> Result<(), Refusal> {
        shard.count_near(&self.target.id, || is_awaited(self.mail));
        shard.hand(activation, self.target, self.mail)?;
        if self.mail.form() != Form::Taken {
            return Err(Refusal::Moved);
        }
        Ok(())
    }

    fn send_to(&mut self, shard: &Shard, to: NodeId, grant: Option<Grant>) -> Result<(), Refusal> {
        shard.send_away(to, grant, self.target, self.mail)
    }

    fn sealed(&mut self, shard: &Shard) -> Option<Box<dyn AnyParcel>> {
        self.mail.seal(shard, self.target)
    }

    fn written(&mut self, shard: &Shard) -> Result<Option<RawParcel>, Refusal> {
        let (interface, deadline) = (self.mail.interface(), self.mail.deadline());
        let own = match self.mail.form() {
            Form::Typed(_) => Some(written(self.mail)?),
            _ => None,
        };
        let chain = self.mail.chain().map(std::mem::take).unwrap_or_default();
        let (method, payload, reply, version) = match self.mail.form() {
            Form::Typed(method) => {
                let Some(reply) = self.mail.reply() else { return Ok(None) };
                let wire = shard.wire_reply(reply, deadline, self.target.hash);
                self.mail.clear();
                let Some(wire) = wire else { return Ok(None) };
                (method, own.unwrap_or_default(), wire, interface.version)
            }
            Form::Wire(method) => {
                let Some(call) = self.mail.take_wire() else { return Ok(None) };
                (method, call.payload, call.reply, chain.wanted())
            }
            Form::Tick => {
                self.mail.take_wire().into_iter().for_each(|call| refuse_reply(call.reply, Refusal::Moved));
                return Ok(None);
            }
            // It was for an activation that has ended.
            Form::Ended | Form::Taken => {
                self.mail.clear();
                return Ok(None);
            }
        };
        let node = &shard.port().node;
        let mut chain = shard.portable(chain);
        if version != chain.wanted() {
            let laden = chain.baggage.as_deref().cloned().unwrap_or_default();
            chain.baggage = Some(Arc::new(Baggage { version: Some(version), ..laden }));
        }
        let route = Arc::new(node.kinds().route(interface.kind, interface.name(method)));
        let (id, journey) = (self.target.id.clone(), Journey::begins_at(node));
        Ok(Some(RawParcel { id, route, payload, reply, deadline, chain, journey }))
    }

    fn opened(&mut self) -> Result<Option<Opened>, Refusal> {
        let (interface, deadline) = (self.mail.interface(), self.mail.deadline());
        let (method, own) = match self.mail.form() {
            Form::Typed(method) => (method, Some(written(self.mail)?)),
            Form::Wire(method) => (method, None),
            // Such are for activations that somebody holds in his hand.
            Form::Ended | Form::Tick | Form::Taken => {
                self.mail.clear();
                return Ok(None);
            }
        };
        let chain = self.mail.chain().map(std::mem::take).unwrap_or_default();
        let reply = self.mail.reply().filter(|reply| reply.awaited()).map(|reply| reply.take());
        let arguments = own.or_else(|| self.mail.take_wire().map(|call| call.payload)).unwrap_or_default();
        self.mail.clear();
        Ok(Some(Opened { method: interface.name(method).into(), arguments, reply, deadline, chain }))
    }
}

/// A message that came as bytes.
struct Raw<'a> {
    id: ActorId,
    hash: u64,
    call: Option<RawCall<'a>>,
}

impl Underway for Raw<'_> {
    fn id(&self) -> &ActorId {
        &self.id
    }

    fn hash(&self) -> u64 {
        self.hash
    }

    fn interface(&self) -> Option<&'static Described> {
        None
    }

    /// Who made the key up is seen where it is parsed.
    fn sender(&self) -> Option<&ActorId> {
        self.call.as_ref()?.sender
    }

    fn is_forged(&self) -> bool {
        false
    }

    fn wanted(&mut self) -> u16 {
        self.call.as_ref().map_or(0, |call| call.chain.wanted())
    }

    fn is_awaited(&mut self) -> bool {
        self.call.as_ref().is_some_and(|call| call.reply.is_awaited())
    }

    fn callers(&mut self) -> Link {
        self.call.as_ref().map(|call| call.chain.link.clone()).unwrap_or_default()
    }

    fn journey(&self, node: &Here) -> Journey {
        self.call.as_ref().map_or_else(|| Journey::begins_at(node), |call| call.journey)
    }

    fn found(&self, shard: &Shard, at: ShardId, slot: Slot) {
        if at == shard.id() {
            shard.remember(self.hash, slot);
        }
    }

    fn offer(&mut self, shard: &Shard, activation: Rc<dyn AnyActivation>) -> Result<(), Refusal> {
        if let Some(call) = self.call.take() {
            shard.offer_raw(activation, call, self.id.kind, self.hash);
        }
        Ok(())
    }

    fn send_to(&mut self, shard: &Shard, to: NodeId, grant: Option<Grant>) -> Result<(), Refusal> {
        if let Some(call) = self.call.take() {
            if let Some(sender) = call.sender {
                shard.count_out_of(sender, &self.id, Place::Node(to), call.reply.is_awaited());
            }
            shard.forward_call(to, grant, call);
        }
        Ok(())
    }

    fn sealed(&mut self, shard: &Shard) -> Option<Box<dyn AnyParcel>> {
        Some(Box::new(self.call.take()?.into_parcel(shard, self.id.clone())))
    }

    fn written(&mut self, shard: &Shard) -> Result<Option<RawParcel>, Refusal> {
        Ok(self.call.take().map(|call| call.into_parcel(shard, self.id.clone())))
    }

    fn opened(&mut self) -> Result<Option<Opened>, Refusal> {
        Ok(self.call.take().map(|RawCall { route, payload, reply, deadline, chain, .. }| {
            let reply = reply.is_awaited().then(|| Box::new(reply) as Box<dyn AnyReply>);
            let arguments = Bytes::copy_from_slice(payload);
            Opened { method: route.method.as_str().into(), arguments, reply, deadline, chain }
        }))
    }
}
