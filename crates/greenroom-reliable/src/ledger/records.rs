//! How records are written: as payloads, with a codec and a version.

use bytes::Bytes;
use greenroom_store::StoreError;
use greenroom_wire::codec::{self, Codec};
use serde::{Deserialize, Serialize};

use greenroom_protocols::delivery::{Epoch, Life};
use greenroom_protocols::reminders::Wall;

/// What a fence says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Fence {
    pub(super) epoch: Epoch,
    pub(super) life: Life,
    /// The owner's name, for people.
    pub(super) owner: String,
    /// When recorded answers were first kept in a log: those that lie under their keys are of before.
    #[serde(default)]
    pub(super) answers_since: Option<Wall>,
    /// Number of the owner's process. An earlier program does not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) process: Option<u64>,
    /// True once the owner has left without dying: none of its turns runs any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_left: bool,
    /// True if an owner before may have died, so that messages that it had begun are suspects. It outlasts a take that the same process
    /// repeats, because its answer was lost or the records could not be read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) after_death: bool,
}

/// A recorded answer as it lay under its key, without a time; with no answer while its call waited in its actor's own queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Earlier<M> {
    pub(super) key: String,
    pub(super) request: u64,
    pub(super) answer: Option<Option<M>>,
}

pub(super) fn encode<T: Serialize + ?Sized>(key: &str, value: &T) -> Result<Bytes, StoreError> {
    encode_as(VERSION, key, value)
}

pub(super) fn decode<T: serde::de::DeserializeOwned>(key: &str, value: &[u8]) -> Result<T, StoreError> {
    decode_up_to(VERSION, key, value)
}

impl Fence {
    pub(super) fn encode(&self, key: &str) -> Result<Bytes, StoreError> {
        encode_as(FENCE_VERSION, key, self)
    }

    pub(super) fn decode(key: &str, value: &[u8]) -> Result<Self, StoreError> {
        decode_up_to(FENCE_VERSION, key, value)
    }
}

fn encode_as<T: Serialize + ?Sized>(version: u8, key: &str, value: &T) -> Result<Bytes, StoreError> {
    codec::written(|out| codec::encode(Codec::MessagePack, version, value, out))
        .map_err(|error| StoreError::InvalidCommit { key: key.to_owned(), reason: error.to_string() })
}

fn decode_up_to<T: serde::de::DeserializeOwned>(known: u8, key: &str, value: &[u8]) -> Result<T, StoreError> {
    let version = codec::parse(value).map(|payload| payload.type_version);
    let reason = match version {
        Ok(version) if version > known => {
            format!("record {key:?} has format {version}, this program knows up to {known}; run the newer program")
        }
        _ => match codec::decode(value) {
            Ok(value) => return Ok(value),
            Err(error) => format!("record {key:?}: {error}"),
        },
    };
    Err(StoreError::Format { store: "the journal".to_owned(), reason })
}

/// Version of all records of a partition but its fence.
const VERSION: u8 = 1;
/// Version of a fence, and so of where a partition's records lie. An owner of format 1 would not see answers in a log, and run
/// calls twice: it must not take the partition.
const FENCE_VERSION: u8 = 2;
