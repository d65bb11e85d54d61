//! Names and messages of reliable actors, as the journal and other nodes see them.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use greenroom_protocols::delivery::{self, Birth, PartitionId};
use greenroom_reliable::ledger::Name;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::births;
use crate::actor::error::Refusal;
use crate::actor::key::{ActorId, Key, Kind, check, stable_hash};
use crate::pids::key::{is_reserved, reserved};

/// The name of a reliable actor.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Named {
    #[serde(deserialize_with = "known_kind")]
    pub(super) kind: Cow<'static, str>,
    pub(super) key: Key,
}

/// The name of a kind, which costs nothing to clone if this process has met it.
fn known_kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cow<'static, str>, D::Error> {
    let name = String::deserialize(deserializer)?;
    Ok(Kind::known(&name).map_or_else(|| name.into(), |kind| kind.name().into()))
}

impl Named {
    pub(super) fn of(id: &ActorId) -> Self {
        Self { kind: id.kind.name().into(), key: id.key.clone() }
    }

    /// Whether there can be a reliable actor of this name in a cluster of so many partitions: its [incarnation](Self::birth).
    ///
    /// # Errors
    /// [`Refusal::InvalidKey`]: no message for it ever arrives.
    pub(super) fn check(&self, partitions: u32) -> Result<Option<Birth>, Refusal> {
        check(&self.key)?;
        if is_reserved(&self.key) {
            return Err(reserved(&self.key));
        }
        let birth = self.birth();
        match birth.filter(|birth| birth.by.0 >= partitions) {
            None => Ok(birth),
            Some(birth) => {
                let (key, by) = (&self.key, birth.by.0);
                let message = format!(
                    "{key:?} names an actor that partition {by} has created, and the cluster has {partitions} partitions; \
                     use the reference that `create` gave"
                );
                Err(Refusal::InvalidKey { message })
            }
        }
    }

    /// The incarnation that the key names, of an actor that another one has created.
    pub(super) fn birth(&self) -> Option<Birth> {
        births::parse(&self.key)
    }

    /// The partition of `partitions` that it is in.
    pub(super) fn partition(&self, partitions: u32) -> PartitionId {
        partition_of(&self.kind, &self.key, partitions)
    }
}

/// The partition of `partitions` that an actor is in.
pub(super) fn partition_of(kind: &str, key: &str, partitions: u32) -> PartitionId {
    PartitionId((stable_hash(kind, key) % u64::from(partitions.max(1))) as u32)
}

impl Name for Named {
    fn kind(&self) -> &str {
        &self.kind
    }

    fn key(&self) -> &str {
        &self.key
    }
}

impl std::fmt::Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.kind, self.key)
    }
}

/// What a message says, or the answer to a call.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub(crate) enum Body {
    /// A method and its arguments as a payload.
    Call {
        method: Arc<str>,
        arguments: Payload,
        /// Request context, trace and principal: an extension block, as calls carry it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        carried: Option<Payload>,
    },
    /// A reply's status on the wire, and its payload.
    Reply { status: u8, payload: Payload },
    /// Brings its actor into being, and does nothing else.
    Created,
    /// What leaves the cluster, in JSON.
    Output(Payload),
}

/// Bytes that cost nothing to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct Payload(pub(super) Bytes);

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde_bytes::ByteBuf::deserialize(deserializer).map(|bytes| Self(bytes.into_vec().into()))
    }
}

pub(crate) type Letter = delivery::Envelope<Named, Body>;
pub(super) type Sealed = delivery::Sealed<Named, Body>;
pub(crate) type Wire = delivery::Wire<Named, Body>;
pub(super) type Machine = delivery::Partition<Named, Body>;
pub(super) type Happening = delivery::Event<Named, Body>;
pub(super) type Act = delivery::Action<Named, Body>;
