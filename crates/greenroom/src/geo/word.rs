//! What nodes say of their multi-cluster, as it is written: plain data, which the control plane carries as well.

use std::collections::BTreeMap;

use bytes::BytesMut;
use greenroom_protocols::gsi::{Acknowledged, ClusterId};
use greenroom_wire::Encoder;
use greenroom_wire::codec::{self, Codec};
use serde::{Deserialize, Serialize};

use super::clusters::Clusters;

/// One node's word. What a later version adds is skipped.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct News {
    pub(super) list: Clusters,
    /// How far the sender's cluster is, as far as the sender knows.
    #[serde(default)]
    pub(super) cluster: Acknowledged,
    /// How far the sender is.
    #[serde(default)]
    pub(super) own: Acknowledged,
    /// The same of actors that have homes.
    #[serde(default)]
    pub(super) cluster_home: AtHome,
    #[serde(default)]
    pub(super) own_home: AtHome,
    /// The view of the sender's cluster in which it found what it says of itself; 0 if it does not say.
    #[serde(default)]
    pub(super) own_view: u64,
    /// What the sender has heard of other clusters: not every node is a gateway.
    #[serde(default)]
    pub(super) heard: BTreeMap<ClusterId, Word>,
    /// The sender's clock, in seconds since 1970; 0 if it does not say.
    #[serde(default)]
    pub(super) wall_s: u64,
    /// After what time its cluster may be taken for lost, in ms; 0 for never, or if it does not say.
    #[serde(default)]
    pub(super) lost_after_ms: u64,
    /// True if the sender knows that its list is in force.
    #[serde(default)]
    pub(super) in_force: bool,
    /// The number of a rival list that never comes into force and is higher than the sender's; 0 if it knows of none.
    #[serde(default)]
    pub(super) rival: u64,
}

/// The list that a node works by, as it says with each answer to another cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ListAnswer {
    /// Its number.
    pub(super) epoch: u64,
    /// The number of the list before it; 0 if there is none.
    pub(super) base: u64,
}

impl ListAnswer {
    pub(super) fn put(&self, encoder: &Encoder, batch: &mut BytesMut) {
        let written = encoder
            .control(batch, ANSWER_CHANNEL, |batch| codec::encode(Codec::MessagePack, FORMAT_VERSION, self, batch));
        if let Err(error) = written {
            tracing::error!(%error, "an answer to another cluster cannot be written");
        }
    }

    pub(super) fn decode(payload: &[u8]) -> Option<Self> {
        codec::decode(payload).ok()
    }
}

/// How far a cluster or a node is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Word {
    pub(super) acknowledged: Acknowledged,
    pub(super) home: AtHome,
    /// The view of its cluster in which that was found; 0 if it does not say.
    #[serde(default)]
    pub(super) view: u64,
}

/// What is said of actors that have homes.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AtHome {
    /// The list for which nothing is owned away from home; 0 for none.
    pub(super) settled: u64,
    /// Kinds, and where their actors are at home.
    pub(super) homes: BTreeMap<String, String>,
}

impl AtHome {
    /// What is true of both.
    pub(super) fn and(self, other: &Self) -> Self {
        let agreed = self.homes == other.homes && self.settled == other.settled;
        Self { settled: if agreed { self.settled } else { 0 }, homes: self.homes }
    }
}

/// The channel of answers on connections between clusters. Nodes of earlier versions skip it.
pub(super) const ANSWER_CHANNEL: u8 = 2;
/// Version of an answer.
const FORMAT_VERSION: u8 = 1;
