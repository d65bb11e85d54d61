//! A shard's own handle on its node, and everybody else's: what references are bound to.

use std::fmt;
use std::sync::Arc;

use greenroom_world::Timestamp;

use super::shared::Shared;
use crate::actor::error::Refusal;
use crate::actor::interface::Interface;
use crate::actor::reference::Inner;
use crate::shard::baggage::Baggage;
use crate::shard::envelope::{Body, Envelope};
use crate::shard::inbox::{INBOX_LEN_MAX, NotTaken};
use crate::shard::submit::Parcel;
use crate::shard::turns::{Chain, Link};
use crate::shard::{AnyParcel, Item};

/// The way into a node. Each shard has its own, so that counting references to it is counting on one core.
pub struct Port {
    pub(crate) node: Arc<Shared>,
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
        let baggage = if own.is_some() { Baggage::join(None, own)? } else { None };
        let chain = Chain { link: Link::None, baggage };
        let envelope = Envelope { body: Body::Typed(message), deadline, chain };
        let parcel = Box::new(Parcel::<I> { target: target.clone(), envelope });
        self.node.enter(&target.id, target.hash, parcel)
    }
}

impl Shared {
    /// Hands a message over to the shard that has its actor, or else to the one that is to look for it.
    pub(crate) fn enter(
        &self,
        id: &crate::actor::key::ActorId,
        hash: u64,
        parcel: Box<dyn AnyParcel>,
    ) -> Result<(), Refusal> {
        let ports = self.shards();
        let home = self.directory().and_then(|directory| directory.home(id, hash));
        let port = home
            .and_then(|home| ports.iter().copied().find(|port| port.id == home))
            .unwrap_or_else(|| self.entrance(hash));
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
