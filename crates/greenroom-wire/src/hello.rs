//! The first frame of each side: who it is, whom it expects, which versions it speaks.

use bytes::{BufMut, BytesMut};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::codec;
use crate::error::{EncodeError, FrameError};
use crate::reader::Reader;

/// The bytes that every connection begins with, after the first frame's length and type.
pub const MAGIC: [u8; 4] = *b"GRRM";

/// The protocol versions that this build speaks.
pub const VERSIONS: Versions = Versions { min: 1, max: 1 };

/// A range of protocol versions, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Versions {
    /// The lowest.
    pub min: u16,
    /// The highest.
    pub max: u16,
}

/// The first frame of each side.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hello {
    /// The versions that the sender speaks.
    pub versions: Versions,
    /// Who the sender is.
    pub body: HelloBody,
}

/// Who the sender of a Hello is. Later versions may add fields, which older ones skip.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HelloBody {
    /// The cluster's name.
    pub cluster: String,
    /// The node's incarnation.
    pub node: u64,
    /// The node's name, for people.
    #[serde(default)]
    pub name: String,
    /// The incarnation that the sender wants to talk to; `None` when it does not know yet.
    #[serde(default)]
    pub expected_peer: Option<u64>,
    /// What the connection is for.
    #[serde(default)]
    pub lane: Lane,
    /// The credit that the sender gives; `None` if it keeps no count, and wants none kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Flow>,
}

/// The credit that a node gives with its Hello, and its clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Flow {
    /// Bytes of calls that may be outstanding: one frame may go beyond it.
    pub window: u64,
    /// The sender's clock, in µs since an origin of its own.
    pub clock: u64,
}

impl Flow {
    /// A window in bytes, and the clock in µs.
    pub fn new(window: u64, clock: u64) -> Self {
        Self { window, clock }
    }
}

impl HelloBody {
    /// The body of a node that does not know yet whom it talks to.
    pub fn new(cluster: impl Into<String>, node: u64, name: impl Into<String>, lane: Lane) -> Self {
        Self { cluster: cluster.into(), node, name: name.into(), expected_peer: None, lane, flow: None }
    }

    /// The same, giving credit.
    #[must_use]
    pub fn giving(mut self, flow: Flow) -> Self {
        self.flow = Some(flow);
        self
    }

    /// The same, for the incarnation `peer` only.
    #[must_use]
    pub fn expecting(mut self, peer: u64) -> Self {
        self.expected_peer = Some(peer);
        self
    }
}

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Lane {
    /// Cluster protocols: never behind user traffic.
    #[default]
    Control,
    /// What other clusters say and are told.
    Geo,
    /// Questions of who looks at a cluster, and what a node says of itself.
    Look,
    /// Calls and replies of one of the sender's shards.
    User {
        /// The shard, below `shards`.
        shard: u16,
        /// How many the sender has.
        shards: u16,
    },
}

impl Hello {
    /// A Hello of this build's versions.
    pub fn new(body: HelloBody) -> Self {
        Self { versions: VERSIONS, body }
    }

    /// Reads a Hello's body. What follows the MessagePack value is a later version's, and ignored.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, FrameError> {
        let mut reader = Reader::new(body);
        let found = reader.array("hello magic")?;
        if found != MAGIC {
            return Err(FrameError::WrongMagic { found });
        }
        let min = u16::from_le_bytes(reader.array("hello lowest version")?);
        let max = u16::from_le_bytes(reader.array("hello highest version")?);
        let body = codec::decode_message_pack_prefix(reader.rest()).map_err(|error| FrameError::HelloBody {
            min,
            max,
            what: error.to_string().into(),
        })?;
        Ok(Self { versions: Versions { min, max }, body })
    }

    pub(crate) fn write(&self, batch: &mut BytesMut) -> Result<(), EncodeError> {
        batch.put_slice(&MAGIC);
        batch.put_u16_le(self.versions.min);
        batch.put_u16_le(self.versions.max);
        codec::encode_message_pack(&self.body, batch)
    }
}

/// Checks that two nodes may talk, and gives the highest version that both speak. Both sides come to the same answer.
///
/// # Errors
/// [`HelloError`] says who is at fault and what to do.
pub fn negotiate(ours: &Hello, theirs: &Hello) -> Result<u16, HelloError> {
    let (us, them) = (&ours.body, &theirs.body);
    let version = ours.versions.max.min(theirs.versions.max);
    if version < ours.versions.min.max(theirs.versions.min) {
        return Err(HelloError::NoCommonVersion { ours: ours.versions, theirs: theirs.versions });
    }
    if us.cluster != them.cluster {
        return Err(HelloError::WrongCluster { ours: us.cluster.clone(), theirs: them.cluster.clone() });
    }
    for (expected, found) in [(us.expected_peer, them.node), (them.expected_peer, us.node)] {
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            return Err(HelloError::WrongIncarnation { expected, found });
        }
    }
    if let Lane::User { shard, shards } = them.lane
        && shard >= shards
    {
        return Err(HelloError::WrongLane { shard, shards });
    }
    Ok(version)
}

/// Why two nodes may not talk. Nothing but the Hellos was exchanged.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum HelloError {
    /// The nodes are of different clusters: an address or a name is configured wrongly. Do not retry.
    #[error("peer is of cluster \"{theirs}\", this node of \"{ours}\"; correct the address or the cluster's name")]
    WrongCluster {
        /// This node's cluster.
        ours: String,
        /// The peer's.
        theirs: String,
    },
    /// The nodes' builds are too far apart. Do not retry before one of them is upgraded.
    #[error(
        "peer speaks protocol versions {} to {}, this node {} to {}; upgrade the older of the two",
        theirs.min, theirs.max, ours.min, ours.max
    )]
    NoCommonVersion {
        /// This node's versions.
        ours: Versions,
        /// The peer's.
        theirs: Versions,
    },
    /// The node was replaced by another incarnation: read the membership table again, then retry.
    #[error("incarnation {expected:#x} was expected, {found:#x} is there; read the membership table again")]
    WrongIncarnation {
        /// The incarnation that one side expected.
        expected: u64,
        /// The one that the other side is.
        found: u64,
    },
    /// The peer names a shard that it says it does not have. The peer is at fault.
    #[error("peer connects for shard {shard} of {shards}; shards count from 0")]
    WrongLane {
        /// The shard.
        shard: u16,
        /// How many there are.
        shards: u16,
    },
}
