//! What nodes tell each other about the cluster, on connections of their own.

use bytes::{Bytes, BytesMut};
use greenroom_protocols::directory::{Decision, Epoch, Move, Placed, RangeId, Released, Report};
use greenroom_protocols::node::NodeId;
use greenroom_protocols::reminders::Wall;
use greenroom_wire::codec::{self, Codec, DecodeError};
use serde::{Deserialize, Serialize};

use super::directory::Entry;
use crate::actor::interface::Why;
use crate::geo::word::News;

/// One message between two nodes' control planes. Unknown variants of later versions are dropped.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ControlMessage {
    /// Are you there? Everybody says by the way what it knows of the table, and how loaded it is.
    Probe { seq: u64, table: u64, activations: u64 },
    /// I am here.
    ProbeAnswer { seq: u64, table: u64, activations: u64 },
    /// Probe that node for me.
    ProbeFor { node: NodeId, seq: u64 },
    /// It answered.
    ProbedFor { node: NodeId, seq: u64 },
    /// I want to join: dial me back at this address.
    JoinProbe { address: String },
    /// I have, or could not.
    JoinProbeAnswer { reached: bool },
    /// My activations of ranges that you own now, and those of them that may not be the only ones over all clusters.
    Reports {
        reports: Vec<Report<Entry>>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        doubtful: Vec<Entry>,
    },
    /// What are your activations of this range?
    AskReport { range: RangeId, view: u64 },
    /// I have released these.
    Released { released: Vec<Released<Entry>> },
    /// I know this version of the table.
    Table { version: u64 },
    /// I have the state of this actor: may I activate it?
    Claim { wish: Move<Entry> },
    /// My decision on the move, in this version of my view.
    Decided {
        wish: Move<Entry>,
        decision: Decision,
        #[serde(default)]
        view: u64,
    },
    /// The actor whose state you sent me is active here.
    Took { wish: Move<Entry> },
    /// The actor whose state you sent me is not taken.
    Declined { wish: Move<Entry> },
    /// The move that you granted is over.
    Settled { key: Entry, placed: Placed },
    /// Let this actor go to that node, if you have it; otherwise tell who has.
    Migrate { key: Entry, to: NodeId, hops: u8 },
    /// Drain: hand over what you have, and leave.
    Drain,
    /// End this activation: a later one is elsewhere.
    Deactivate { entry: Entry, epoch: Epoch },
    /// I cannot reach that node: hand it this.
    Pass { to: NodeId, errand: Errand },
    /// That node cannot reach you, and has me hand you this.
    Passed { from: NodeId, errand: Errand },
    /// I have made a hint in a range of reminders that you own; it comes up at `wake`. Confirm the word.
    ReminderMade { range: RangeId, wake: Wall, word: u64 },
    /// I know of it.
    ReminderKnown { range: RangeId, word: u64 },
    /// What I know of the multi-cluster.
    Clusters(Box<News>),
    /// This activation is the only one over all clusters; it may use what was read early under this token.
    Owned {
        key: Entry,
        epoch: Epoch,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        early: Option<u64>,
        /// Another instance may have saved: its states are read again before its next turn.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reload: bool,
    },
    /// Read the states of this actor, which you may soon activate.
    ReadEarly { key: Entry, token: u64 },
    /// End this activation, for the good of the multi-cluster.
    End { key: Entry, epoch: Epoch, why: Why },
}

/// What a node may say to another through a third one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Errand {
    /// As [`ControlMessage::AskReport`]; what answers it goes the same way.
    AskReport { range: RangeId, view: u64 },
    /// As [`ControlMessage::Reports`].
    Reports {
        reports: Vec<Report<Entry>>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        doubtful: Vec<Entry>,
    },
    /// As [`ControlMessage::Released`].
    Released { released: Vec<Released<Entry>> },
    /// As [`ControlMessage::Deactivate`].
    Deactivate { entry: Entry, epoch: Epoch },
    /// I cannot reach you, while others can.
    Apart,
}

impl Errand {
    /// What may go another way.
    pub(super) fn of(message: &ControlMessage) -> Option<Self> {
        Some(match message {
            ControlMessage::AskReport { range, view } => Self::AskReport { range: *range, view: *view },
            ControlMessage::Reports { reports, doubtful } => {
                Self::Reports { reports: reports.clone(), doubtful: doubtful.clone() }
            }
            ControlMessage::Released { released } => Self::Released { released: released.clone() },
            ControlMessage::Deactivate { entry, epoch } => Self::Deactivate { entry: entry.clone(), epoch: *epoch },
            _ => return None,
        })
    }
}

impl ControlMessage {
    pub(super) fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        // Plain data always encodes.
        let _ = codec::encode(Codec::MessagePack, FORMAT_VERSION, self, &mut out);
        out.freeze()
    }

    pub(super) fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(payload)
    }
}

/// Version of these messages.
const FORMAT_VERSION: u8 = 1;
/// The channel of control frames that these messages use.
pub(super) const CHANNEL: u8 = 1;
