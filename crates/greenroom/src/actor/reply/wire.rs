//! Replies that leave this node, or the typed world.

use bytes::{Bytes, BytesMut};
use greenroom_protocols::node::NodeId;
use greenroom_wire::codec::{self, Codec};
use greenroom_wire::{CallId, EncodeError, Status};
use tokio::sync::oneshot;

use super::told::{ReplyForm, Says};
use super::{AnyReply, CallSite, TYPE_VERSION, complete, completion};
use crate::actor::error::{CallError, Doubt, Failure};
use crate::actor::interface::Portable;
use crate::shard::calls::Completion;
use crate::shard::cancel::CallKey;
use crate::shard::{Item, LaneId, Shard, ShardId};

/// A reply that leaves this node, or the typed world: its bytes go where the call came from.
pub struct WireReply {
    to: WireSite,
    form: ReplyForm,
    /// What the method's own error says, of one with a `Display`.
    says: Option<Says>,
}

enum WireSite {
    Nobody,
    /// Back on the connection of this shard that the call came on.
    Lane {
        shard: ShardId,
        lane: LaneId,
        peer: NodeId,
        call: CallId,
    },
    /// To the node that called, as another one has forwarded the call.
    Node {
        node: NodeId,
        call: CallId,
    },
    /// To a gateway of this node.
    Gateway(oneshot::Sender<Completion>, u32),
    /// To a call of a shard of this node.
    Here(CallSite),
    /// To who runs the turn, and wants to know how it ends and not what it answers.
    Runner(oneshot::Sender<Completion>, u32),
}

/// What writes a payload: the only part of a reply's way that is made for its type.
pub(crate) type Writes<'a> = &'a mut dyn FnMut(&mut BytesMut) -> Result<(), EncodeError>;

/// Who answers a call that goes on to another node.
pub(crate) enum Forward {
    Nobody,
    /// That node may answer to the origin itself.
    Origin(NodeId, CallId),
    /// The reply must come back here first.
    Relay(Box<dyn AnyReply>),
}

impl WireReply {
    pub(crate) fn lane(shard: ShardId, lane: LaneId, peer: NodeId, call: CallId, form: ReplyForm) -> Self {
        Self::new(WireSite::Lane { shard, lane, peer, call }, form)
    }

    pub(crate) fn node(node: NodeId, call: CallId, form: ReplyForm) -> Self {
        Self::new(WireSite::Node { node, call }, form)
    }

    pub(crate) fn gateway(sender: oneshot::Sender<Completion>, number: u32, form: ReplyForm) -> Self {
        Self::new(WireSite::Gateway(sender, number), form)
    }

    pub(crate) fn runner(sender: oneshot::Sender<Completion>, number: u32) -> Self {
        Self::new(WireSite::Runner(sender, number), ReplyForm::PLAIN)
    }

    pub(crate) fn here(site: CallSite, form: ReplyForm) -> Self {
        Self::new(WireSite::Here(site), form)
    }

    /// Forgets it without a word: somebody else answers.
    pub(crate) fn forget(&mut self) {
        self.to = WireSite::Nobody;
    }

    pub(crate) fn nobody() -> Self {
        Self::new(WireSite::Nobody, ReplyForm::PLAIN)
    }

    fn new(to: WireSite, form: ReplyForm) -> Self {
        Self { to, form, says: None }
    }

    /// The same, for a method whose own error says so much.
    #[must_use]
    pub fn saying(self, says: Option<Says>) -> Self {
        let mut reply = self;
        reply.says = says;
        reply
    }

    pub(crate) fn is_awaited(&self) -> bool {
        !matches!(self.to, WireSite::Nobody)
    }

    /// Whether it goes to a gateway of this node.
    pub(super) fn is_of_gateway(&self) -> bool {
        matches!(self.to, WireSite::Gateway(..))
    }

    /// The name of the call that waits for it.
    pub(crate) fn key(&self) -> CallKey {
        match &self.to {
            WireSite::Nobody => CallKey::NONE,
            WireSite::Lane { peer, call, .. } => CallKey::far(*peer, *call),
            WireSite::Node { node, call } => CallKey::far(*node, *call),
            WireSite::Gateway(_, number) | WireSite::Runner(_, number) => CallKey::outside(*number),
            WireSite::Here(site) => CallKey::local(*site),
        }
    }

    /// What another node needs to answer in this one's stead.
    pub(crate) fn forward(mut self) -> Forward {
        match std::mem::replace(&mut self.to, WireSite::Nobody) {
            WireSite::Nobody => Forward::Nobody,
            WireSite::Lane { peer, call, .. } => Forward::Origin(peer, call),
            WireSite::Node { node, call } => Forward::Origin(node, call),
            to => Forward::Relay(Box::new(WireReply::new(to, self.form))),
        }
    }

    pub(super) fn answer<T: Portable, E: Portable>(self, result: Result<T, CallError<E>>) {
        match result {
            Ok(value) => {
                let codec = self.form.codec;
                self.encode(Status::Ok, &mut |out| codec::encode(codec, TYPE_VERSION, &value, out));
            }
            Err(CallError::Actor(error)) => {
                let (form, says) = (self.form, self.says);
                self.encode(Status::ActorError, &mut |out| form.encode_error(&error, says, out));
            }
            Err(other) => self.finish(completion::<T, E>(Err(other))),
        }
    }

    fn encode(mut self, status: Status, write: Writes<'_>) {
        let to = std::mem::replace(&mut self.to, WireSite::Nobody);
        match to {
            WireSite::Nobody => {}
            here @ (WireSite::Gateway(..) | WireSite::Here(_)) => {
                here.finish(match codec::written(write) {
                    Ok(payload) => Completion::Wire { status, payload, from: None },
                    Err(error) => Completion::Failed(Box::new(unencodable(&error))),
                });
            }
            runner @ WireSite::Runner(..) => {
                runner.finish(Completion::Wire { status, payload: Bytes::new(), from: None });
            }
            to => Shard::with(|shard| {
                if let Some(shard) = shard {
                    send(shard, to, status, write);
                }
            }),
        }
    }

    pub(crate) fn finish(mut self, completion: Completion) {
        let to = std::mem::replace(&mut self.to, WireSite::Nobody);
        to.finish(completion);
    }
}

/// Sends a reply frame: on the lane of this shard that it belongs to, or through the shard that has it.
fn send(shard: &Shard, to: WireSite, status: Status, write: Writes<'_>) {
    match to {
        WireSite::Lane { shard: owner, lane, call, .. } if owner == shard.id() => {
            shard.lane_reply(lane, call, status, write);
        }
        WireSite::Node { node, call } => shard.node_reply(node, call, status, write),
        WireSite::Lane { shard: owner, lane, call, .. } => {
            let mut out = BytesMut::new();
            let (status, payload) = match write(&mut out) {
                Ok(()) => (status, out.freeze()),
                Err(error) => encode_failure(&unencodable(&error)),
            };
            shard.post(owner, Item::LaneReply { lane, call, status, payload });
        }
        WireSite::Nobody | WireSite::Gateway(..) | WireSite::Here(_) | WireSite::Runner(..) => {}
    }
}

impl WireSite {
    fn finish(self, completion: Completion) {
        match (self, completion) {
            (WireSite::Nobody, _) => {}
            (WireSite::Gateway(sender, _) | WireSite::Runner(sender, _), completion) => {
                let _ = sender.send(completion);
            }
            (WireSite::Here(site), completion) => complete(site, completion),
            (to, completion) => {
                let (status, payload) = match completion {
                    Completion::Wire { status, payload, .. } => (status, payload),
                    Completion::Failed(failure) => encode_failure(&failure),
                    Completion::Value(_) => encode_failure(&Doubt::Dropped.into()),
                };
                Shard::with(|shard| {
                    if let Some(shard) = shard {
                        send(shard, to, status, &mut |out| {
                            out.extend_from_slice(&payload);
                            Ok(())
                        });
                    }
                });
            }
        }
    }
}

impl Drop for WireReply {
    fn drop(&mut self) {
        let to = std::mem::replace(&mut self.to, WireSite::Nobody);
        to.finish(Completion::Failed(Box::new(Doubt::Dropped.into())));
    }
}

/// A failure as it travels.
pub(crate) fn encode_failure(failure: &Failure) -> (Status, Bytes) {
    let status = match failure {
        Failure::Refused(_) => Status::Refused,
        Failure::Unknown(Doubt::Panicked { .. }) => Status::Panicked,
        Failure::Unknown(_) => Status::Unknown,
        Failure::Cycle(_) => Status::Cycle,
    };
    let mut out = BytesMut::new();
    if codec::encode(Codec::MessagePack, TYPE_VERSION, failure, &mut out).is_err() {
        out.clear();
    }
    (status, out.freeze())
}

/// A reply that cannot be encoded: the turn has run.
pub(crate) fn unencodable(error: &EncodeError) -> Failure {
    Doubt::Unreadable { message: format!("the reply cannot be encoded: {error}") }.into()
}
