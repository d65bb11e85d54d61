//! What clusters send to each other about one actor.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use greenroom_protocols::gsi;
use greenroom_wire::codec::{self, Codec, DecodeError};
use greenroom_wire::{EncodeError, Status};
use greenroom_world::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::actor::reply::encode_failure;
use crate::shard::calls::Completion;

/// Bytes that the machines hand on unread.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct Blob(pub(crate) Bytes);

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde_bytes::ByteBuf::deserialize(deserializer).map(|bytes| Self(Bytes::from(bytes.into_vec())))
    }
}

/// The machine of one actor.
pub(super) type Machine = gsi::Entry<Operation, Blob, Blob>;
pub(crate) type Event = gsi::Event<Operation, Blob, Blob>;
pub(super) type Action = gsi::Action<Operation, Blob, Blob>;
pub(crate) type Message = gsi::Message<Operation, Blob, Blob>;
pub(super) type Body = gsi::Body<Operation, Blob, Blob>;

/// A message of one cluster to another, on its way to the node that has the actor's range.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Letter {
    pub(super) kind: String,
    pub(super) key: String,
    /// The cluster that sends it.
    pub(super) from: gsi::ClusterId,
    /// The sender's clock when it left, in ns: deadlines within are by this clock.
    pub(super) clock: u64,
    /// Nodes of the receiving cluster that have passed it on.
    pub(super) hops: u8,
    /// With an answer that passes: no instance has been there of late.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) quiet: bool,
    pub(super) message: Message,
}

impl Letter {
    /// Appends it to `out`.
    ///
    /// # Errors
    /// It is too large.
    pub(super) fn encode(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        codec::encode(Codec::MessagePack, FORMAT_VERSION, self, out)
    }

    /// Reads one.
    ///
    /// # Errors
    /// The sender is at fault.
    pub(super) fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(payload)
    }

    /// Turns the deadlines within into ones by this node's clock, which now shows `now`.
    pub(super) fn by_own_clock(&mut self, now: Timestamp) {
        let clock = std::mem::replace(&mut self.clock, now.as_nanos());
        let turn = |operation: &mut Operation| {
            if operation.deadline != u64::MAX {
                let left = operation.deadline.saturating_sub(clock).min(LEFT_MAX.as_nanos() as u64);
                operation.deadline = now.as_nanos().saturating_add(left);
            }
        };
        match &mut self.message.body {
            Body::Ask { carried, .. } => carried.iter_mut().for_each(|call| turn(&mut call.operation)),
            Body::Forward { call, .. } => turn(&mut call.operation),
            _ => {}
        }
    }

    /// Bytes of the arguments that it carries.
    pub(super) fn len(&self) -> usize {
        let len = |operation: &Operation| operation.payload.0.len() + operation.extension.0.len();
        match &self.message.body {
            Body::Ask { carried, .. } => carried.iter().map(|call| len(&call.operation)).sum(),
            Body::Forward { call, .. } => len(&call.operation),
            Body::Result { result, .. } => result.0.len(),
            Body::HandOver { unseen, .. } => unseen.0.len(),
            _ => 0,
        }
    }
}

/// A call that may run in another cluster.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Operation {
    pub(crate) method: Arc<str>,
    /// The arguments, with their codec.
    pub(crate) payload: Blob,
    /// When its caller gives up, by the clock of the node that has it, in ns.
    pub(crate) deadline: u64,
    /// Whether anybody waits for what comes out.
    pub(crate) awaited: bool,
    /// The actors that wait for it, as in the frame of a call.
    pub(crate) chain: Blob,
    /// What it carries, as in the frame of a call.
    pub(crate) extension: Blob,
}

/// What came out of a call, for another cluster: its status, and the bytes of its reply's frame.
pub(crate) fn outcome(completion: Completion) -> Blob {
    let (status, payload) = match completion {
        Completion::Wire { status, payload, .. } => (status, payload),
        Completion::Failed(failure) => encode_failure(&failure),
        Completion::Value(_) => (Status::Unknown, Bytes::new()),
    };
    let mut out = BytesMut::with_capacity(payload.len() + 1);
    out.extend_from_slice(&[status.to_byte()]);
    out.extend_from_slice(&payload);
    Blob(out.freeze())
}

/// The end of a call that ran in another cluster.
pub(super) fn completion(mut outcome: Blob) -> Completion {
    if outcome.0.is_empty() {
        return Completion::Wire { status: Status::Unknown, payload: Bytes::new(), from: None };
    }
    let payload = outcome.0.split_off(1);
    Completion::Wire { status: Status::from_byte(outcome.0[0]), payload, from: None }
}

/// The longest time that a call of another cluster may have left: no clock of ours runs over by it.
const LEFT_MAX: Duration = Duration::from_secs(24 * 3600);
/// Version of these messages.
const FORMAT_VERSION: u8 = 1;

#[cfg(test)]
mod tests {
    use greenroom_protocols::gsi::{Carried, ConfigEpoch, Round};

    use super::*;

    fn letter() -> Letter {
        let operation = Operation {
            method: "post".into(),
            payload: Blob(Bytes::from_static(&[1, 1, 0x90])),
            deadline: 5_000,
            awaited: true,
            chain: Blob::default(),
            extension: Blob::default(),
        };
        let carried = vec![Carried { id: gsi::CallId(7), operation }];
        let message = Message {
            configuration: ConfigEpoch(2),
            body: Body::Ask { round: Round(3), carried, leased: false, doubtful: false },
        };
        let (kind, key) = ("room".to_owned(), "lobby".to_owned());
        Letter { kind, key, from: gsi::ClusterId(9), clock: 1_000, hops: 0, quiet: false, message }
    }

    #[test]
    fn letters_keep_their_form() {
        let mut out = BytesMut::new();
        letter().encode(&mut out).unwrap();
        let hex: String = out.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, GOLDEN);
        let read = Letter::decode(&out).unwrap();
        assert_eq!((read.message, read.clock, read.from), (letter().message, 1_000, gsi::ClusterId(9)));
    }

    #[test]
    fn deadlines_go_by_the_receivers_clock() {
        let mut letter = letter();
        letter.by_own_clock(Timestamp::from_nanos(1_000_000));
        let Body::Ask { carried, .. } = &letter.message.body else { panic!("it is a question") };
        assert_eq!(carried[0].operation.deadline, 1_004_000);
    }

    const GOLDEN: &str = "010186a46b696e64a4726f6f6da36b6579a56c6f626279a466726f6d09a5636c6f636bcd03e8a4686f707300a76d65737361\
        676582ad636f6e66696775726174696f6e02a4626f647981a341736b83a5726f756e6403a7636172726965649182a2696407\
        a96f7065726174696f6e86a66d6574686f64a4706f7374a77061796c6f6164c403010190a8646561646c696e65cd1388a761776169746564c3a5636861696ec400a9657874656e73696f6ec400\
        a66c6561736564c2";
}
