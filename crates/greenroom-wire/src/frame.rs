//! The frames, as they come off the wire.

use std::time::Duration;

use bytes::Bytes;

use crate::chain::Chain;
use crate::extension::Extension;
use crate::hello::Hello;
use crate::text::Text;
use crate::varint::LENGTH_LEN;

/// One frame. Payloads, keys and chains are slices of the buffer it was read into.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Frame {
    /// The first frame of each side.
    Hello(Hello),
    /// Gives a (kind, method) its number on this connection, in this direction.
    Define(Define),
    /// Asks an actor for a turn.
    Call(Call),
    /// Answers a call.
    Reply(Reply),
    /// A message of a cluster protocol.
    Control(Control),
    /// Asks for a Pong with the same nonce.
    Ping(u64),
    /// Answers a Ping.
    Pong(u64),
    /// The last frame: why the sender closes.
    Goodbye(Text),
    /// Nobody waits for a call any more.
    Cancel(Cancel),
    /// An item of a stream of replies.
    StreamItem(StreamItem),
    /// Room at the consumer of a stream of replies.
    StreamCredit(StreamCredit),
    /// The end of a stream of replies.
    StreamEnd(StreamEnd),
    /// How much the other side may send on this connection, and when this was said.
    Credit(Credit),
    /// What a cluster says to another about one actor.
    Letter(Bytes),
    /// What an instance of a versioned state says to the one in another cluster.
    StateLetter(Bytes),
    /// A frame of a later version: to be ignored.
    Unknown(Unknown),
}

/// Gives a (kind, method) its number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Define {
    /// The number: the sender's next unused one, from 0.
    pub route: u16,
    /// The actor's kind.
    pub kind: Text,
    /// The method of the kind.
    pub method: Text,
}

/// Asks an actor for a turn.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// Where the caller waits; `None` for a one-way message.
    pub id: Option<CallId>,
    /// The node that gets the reply; `None` when it is the node at the other end of this connection.
    pub origin: Option<u64>,
    /// How often the call was forwarded.
    pub hops: u8,
    /// The (kind, method), as defined on this connection.
    pub route: u16,
    /// The actor's key.
    pub key: Text,
    /// What was left of the call's time when it was sent; µs resolution.
    pub deadline: Option<Duration>,
    /// The directory's word that this node hosts the actor.
    pub grant: Option<Grant>,
    /// The actors that wait for this call.
    pub chain: Chain,
    /// What only some calls carry.
    pub extension: Extension,
    /// The arguments: see [`codec`](crate::codec).
    pub payload: Bytes,
}

/// Where a caller waits for its reply: meaningful to the node that made it only.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallId {
    /// The caller's shard.
    pub shard: u16,
    /// The slot in the shard's table of pending calls.
    pub index: u32,
    /// Tells the slot's uses apart.
    pub generation: u32,
}

/// The directory's word that the receiver hosts the actor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grant {
    /// The grantor's epoch.
    pub epoch: u64,
    /// The membership view it was given in.
    pub view: u64,
    /// The node that gave it.
    pub grantor: u64,
}

/// Answers a call.
#[derive(Clone, PartialEq, Debug)]
pub struct Reply {
    /// The call that is answered.
    pub id: CallId,
    /// How it went.
    pub status: Status,
    /// The result or the error, by status.
    pub payload: Bytes,
}

/// How a call went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Status {
    /// The turn ended with a value: the payload.
    Ok,
    /// The turn ended with the handler's own error: the payload.
    ActorError,
    /// Nothing ran; a retry is safe. The payload says why.
    Refused,
    /// It may have run.
    Unknown,
    /// The call would have deadlocked; the payload is the chain.
    Cycle,
    /// The turn panicked; the payload is the message.
    Panicked,
    /// The arguments could not be decoded, or there is no such kind or method; nothing ran.
    Invalid,
    /// The deadline passed before the turn began; nothing ran.
    Expired,
    /// A later version's status: treat it as [`Status::Unknown`].
    Other(u8),
}

impl Status {
    /// The byte on the wire.
    #[inline]
    pub fn to_byte(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::ActorError => 1,
            Self::Refused => 2,
            Self::Unknown => 3,
            Self::Cycle => 4,
            Self::Panicked => 5,
            Self::Invalid => 6,
            Self::Expired => 7,
            Self::Other(byte) => byte,
        }
    }

    /// The status of a byte on the wire.
    #[inline]
    pub fn from_byte(byte: u8) -> Self {
        match byte {
            0 => Self::Ok,
            1 => Self::ActorError,
            2 => Self::Refused,
            3 => Self::Unknown,
            4 => Self::Cycle,
            5 => Self::Panicked,
            6 => Self::Invalid,
            7 => Self::Expired,
            other => Self::Other(other),
        }
    }
}

/// A message of a cluster protocol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Control {
    /// The protocol.
    pub channel: u8,
    /// Its message.
    pub payload: Bytes,
}

/// Nobody waits for a call any more: it need not start, and a turn that runs for it may end early.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cancel {
    /// The call.
    pub id: CallId,
    /// The node that made the call; `None` when it is the one at the other end of this connection.
    pub origin: Option<u64>,
    /// What was left of the call's time: when it is over, the call need not be remembered; µs resolution.
    pub left: Duration,
    /// The called actor's kind.
    pub kind: Text,
    /// The called actor's key.
    pub key: Text,
}

/// An item of a stream of replies. Travels on the connection that the stream's first [`StreamCredit`] came on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamItem {
    /// Where the consumer waits.
    pub consumer: CallId,
    /// Items of the stream before this one.
    pub number: u64,
    /// The item: see [`codec`](crate::codec).
    pub payload: Bytes,
}

/// What the consumer of a stream of replies has room for. The first one begins the stream; each says all that there is to
/// say, so a repeated or late one does no harm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamCredit {
    /// Where the stream waits on the producer's node.
    pub stream: CallId,
    /// What the producer gave out with the stream: nobody else can know it.
    pub token: u64,
    /// Where items go.
    pub consumer: CallId,
    /// The codec of the items: [`Codec::tag`](crate::codec::Codec::tag).
    pub codec: u8,
    /// Items that may be under way at once; 0 gives the stream up.
    pub window: u32,
    /// Items that the consumer has taken since the beginning.
    pub consumed: u64,
}

/// The end of a stream of replies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamEnd {
    /// Where the consumer waits.
    pub consumer: CallId,
    /// Items that the stream had.
    pub number: u64,
    /// [`Status::Ok`] for a stream that is complete; else why it broke off.
    pub status: Status,
    /// The error, by status; empty for a complete stream.
    pub payload: Bytes,
}

/// How much the other side may send on this connection, and when this was said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Credit {
    /// Bytes of calls, their length fields included, that the other side may have sent since the connection began, beyond
    /// what the sender of this frame gave it with its Hello.
    pub granted: u64,
    /// The sender's clock, in µs since an origin of its own: how long what follows was under way can be told from the
    /// differences.
    pub clock: u64,
}

/// A frame of a type that this version does not know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unknown {
    /// The type.
    pub frame_type: u8,
    /// The body.
    pub body: Bytes,
}

/// What a network that loses, repeats or reorders whole frames may do to one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameClass {
    /// Hello, Define, Goodbye, Credit, the frames of streams, and what is unknown: the connection is broken without it.
    Essential,
    /// Call, Reply, Cancel, Letter, StateLetter: may be lost, repeated, reordered.
    User,
    /// Control, Ping, Pong: may be lost, repeated, reordered.
    Control,
}

/// The class of a whole frame, its length field included.
pub fn classify(frame: &[u8]) -> FrameClass {
    match frame.get(LENGTH_LEN) {
        Some(&(CALL | REPLY | CANCEL | LETTER | STATE_LETTER)) => FrameClass::User,
        Some(&(CONTROL | PING | PONG)) => FrameClass::Control,
        _ => FrameClass::Essential,
    }
}

/// Whether the frame that `bytes` begin with is a call.
#[inline]
pub fn is_call(bytes: &[u8]) -> bool {
    bytes.get(LENGTH_LEN) == Some(&CALL)
}

/// Bytes of the frame that `bytes` begin with, its length field included; `None` until that field is there. It is what
/// the sender says: not checked against any limit.
#[inline]
pub fn frame_len(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk::<LENGTH_LEN>().map(|len| u64::from(u32::from_le_bytes(*len)) + LENGTH_LEN as u64)
}

pub(crate) const HELLO: u8 = 1;
pub(crate) const DEFINE: u8 = 2;
pub(crate) const CALL: u8 = 3;
pub(crate) const REPLY: u8 = 4;
pub(crate) const CONTROL: u8 = 5;
pub(crate) const PING: u8 = 6;
pub(crate) const PONG: u8 = 7;
pub(crate) const GOODBYE: u8 = 8;
pub(crate) const CANCEL: u8 = 9;
pub(crate) const STREAM_ITEM: u8 = 10;
pub(crate) const STREAM_CREDIT: u8 = 11;
pub(crate) const STREAM_END: u8 = 12;
pub(crate) const CREDIT: u8 = 13;
pub(crate) const LETTER: u8 = 20;
pub(crate) const STATE_LETTER: u8 = 21;

/// The call's flags: which optional parts are there. 0x40 is free, and an error.
pub(crate) mod flag {
    pub(crate) const ID: u8 = 0x01;
    pub(crate) const ORIGIN: u8 = 0x02;
    pub(crate) const HOPS: u8 = 0x04;
    pub(crate) const DEADLINE: u8 = 0x08;
    pub(crate) const GRANT: u8 = 0x10;
    pub(crate) const CHAIN: u8 = 0x20;
    pub(crate) const FREE: u8 = 0x40;
    pub(crate) const EXTENSION: u8 = 0x80;
}
