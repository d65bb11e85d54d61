//! Messages as shards handle them: typed, or as they came from afar.

use bytes::Bytes;
use greenroom_world::Timestamp;

use super::Shard;
use super::chain::{Chain, PortableChain};
use super::ticking::Mark;
use crate::actor::reply::WireReply;
use crate::pids::ended::Ended;

/// A message on its way to an activation.
pub(crate) struct Envelope<M, C = Chain> {
    pub(crate) body: Body<M>,
    pub(crate) deadline: Timestamp,
    pub(crate) chain: C,
}

/// A message that may leave its shard.
pub(crate) type PortableEnvelope<M> = Envelope<M, PortableChain>;

impl<M> Envelope<M> {
    /// Makes the message one that may leave `shard`.
    #[inline]
    pub(super) fn portable(self, shard: &Shard) -> PortableEnvelope<M> {
        let Self { body, deadline, chain } = self;
        Envelope { body, deadline, chain: shard.portable(chain) }
    }
}

impl<M> From<PortableEnvelope<M>> for Envelope<M> {
    #[inline]
    fn from(message: PortableEnvelope<M>) -> Self {
        let Envelope { body, deadline, chain } = message;
        Self { body, deadline, chain: chain.into() }
    }
}

/// A message, read or not yet read.
pub(crate) enum Body<M> {
    Typed(M),
    /// In a box, as only those have this form that wait.
    Wire(Box<WireCall>),
    /// No message, but news for its `ended` hook: an actor that it watches is no more.
    Ended(Box<Ended>),
    /// A tick of one of the activation's timers, or of a reminder. It never leaves its activation.
    Tick(Box<(WireCall, Mark)>),
}

/// A message as it came from another node or a gateway.
pub(crate) struct WireCall {
    pub(crate) method: u16,
    pub(crate) payload: Bytes,
    pub(crate) reply: WireReply,
}

/// A message as it is read off a connection.
pub(crate) struct IncomingCall<'a> {
    pub(crate) method: u16,
    pub(crate) payload: &'a [u8],
    pub(crate) reply: WireReply,
    pub(crate) deadline: Timestamp,
    pub(crate) chain: Chain,
}
