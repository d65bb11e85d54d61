//! A shard's own handle on its node, and everybody else's: what references are bound to.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use greenroom_protocols::shedding::Class;
use greenroom_world::Timestamp;

use super::Here;
use crate::actor::error::Refusal;
use crate::actor::interface::Interface;
use crate::actor::key::ActorId;
use crate::actor::reference::Inner;
use crate::intercept::CallInfo;
use crate::pids::key::{Address, is_reserved};
use crate::shard::baggage::{Baggage, Load};
use crate::shard::cancel::CallKey;
use crate::shard::chain::PortableChain;
use crate::shard::envelope::{Body, Envelope};
use crate::shard::inbox::{INBOX_LEN_MAX, NotTaken};
use crate::shard::submit::Parcel;
use crate::shard::{AnyParcel, Item, Shard, ShardPort};

/// The way into a node. Each shard has its own, so that counting references to it is counting on one core.
pub struct Port {
    pub(crate) node: Arc<Here>,
}

impl Port {
    /// Sends a message from outside of the node's shards.
    pub(crate) fn send<I: Interface>(
        &self,
        target: &Arc<Inner>,
        message: I::Message,
        deadline: Timestamp,
        own: Option<Box<Baggage>>,
    ) -> Result<(), Refusal> {
        let baggage = self.outgoing(target, I::METHODS[usize::from(I::method(&message))].name, own)?;
        let chain = PortableChain { link: None, baggage };
        let envelope = Envelope { body: Body::Typed(message), deadline, chain };
        let parcel = Box::new(Parcel::<I> { target: target.clone(), envelope });
        self.node.enter(&target.id, target.hash, parcel)
    }

    /// What a message from outside carries, once its interceptors have seen it.
    fn outgoing(&self, target: &Inner, method: &'static str, own: Option<Box<Baggage>>) -> Result<Load, Refusal> {
        let mut baggage = if own.is_some() { Baggage::join(None, own)? } else { None };
        if !self.node.kinds().interceptors().is_empty() {
            let came_with = baggage.as_ref().and_then(|baggage| baggage.trace.clone());
            let mut call = CallInfo {
                actor: &target.id,
                method,
                caller: None,
                queued: Duration::ZERO,
                came_with,
                baggage: &mut baggage,
            };
            self.node.kinds().interceptors().outgoing(&mut call)?;
        }
        Ok(baggage)
    }
}

impl Here {
    /// Tells the shard that a call from outside went to that nobody waits for it any more.
    pub(crate) fn abandon_outside(&self, number: u32, deadline: Timestamp, id: &ActorId, hash: u64) {
        let way_in = self.way_in(id, hash);
        let (key, id) = (CallKey::outside(number), id.clone());
        let run = move |shard: &Shard| shard.abandon_outside(key, deadline, &id, hash);
        // A shard that is gone runs nothing.
        let _ = way_in.push(Item::Run(Box::new(run)));
    }

    /// The shard of this node that the key of a spawned actor names.
    pub(crate) fn home_of_spawned(&self, key: &str) -> Option<ShardPort> {
        let address = Address::parse(key)?;
        self.shards().get(usize::from(address.shard)).copied().filter(|_| address.node() == self.me())
    }

    /// The shard that has the actor, or else the one that is to look for it.
    fn way_in(&self, id: &ActorId, hash: u64) -> ShardPort {
        if is_reserved(&id.key) {
            return self.home_of_spawned(&id.key).unwrap_or_else(|| self.entrance(hash));
        }
        let port = self.home(id, hash).and_then(|home| self.shards().iter().copied().find(|port| port.id == home));
        port.unwrap_or_else(|| self.entrance(hash))
    }

    /// Hands a message over to the shard that has its actor, or else to the one that is to look for it.
    pub(crate) fn enter(&self, id: &ActorId, hash: u64, parcel: Box<dyn AnyParcel>) -> Result<(), Refusal> {
        if self.is_closing() {
            parcel.refuse(Refusal::Stopping);
            return Err(Refusal::Stopping);
        }
        let port = self.way_in(id, hash);
        let place = self.shards().iter().position(|known| known.id == port.id);
        let gauges = place.and_then(|index| self.gauges().get(index));
        if let Some(Err(refusal)) = gauges.map(|gauges| gauges.shed().admit(self, || Class::Outside)) {
            parcel.refuse(refusal.clone());
            return Err(refusal);
        }
        match port.push(Item::Parcel(parcel)) {
            Ok(()) => Ok(()),
            Err((why, item)) => {
                let refusal = match why {
                    NotTaken::Full => {
                        Refusal::Overloaded { queue: "the inbox of a shard".into(), bound: INBOX_LEN_MAX as u64 }
                    }
                    NotTaken::Closed => Refusal::Stopping,
                };
                if let Item::Parcel(parcel) = item {
                    parcel.refuse(refusal.clone());
                }
                Err(refusal)
            }
        }
    }
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Port({})", self.node.name())
    }
}
