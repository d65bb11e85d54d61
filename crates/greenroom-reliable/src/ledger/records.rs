//! How records are written: as payloads, with a codec and a version.

use bytes::{Bytes, BytesMut};
use greenroom_store::StoreError;
use greenroom_wire::codec::{self, Codec};
use serde::{Deserialize, Serialize};

use greenroom_protocols::delivery::{Epoch, Life};

/// What a fence says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Fence {
    pub(super) epoch: Epoch,
    pub(super) life: Life,
    /// The owner's name, for people.
    pub(super) owner: String,
}

pub(super) fn encode<T: Serialize + ?Sized>(key: &str, value: &T) -> Result<Bytes, StoreError> {
    let mut out = BytesMut::new();
    codec::encode(Codec::MessagePack, VERSION, value, &mut out)
        .map_err(|error| StoreError::InvalidCommit { key: key.to_owned(), reason: error.to_string() })?;
    Ok(out.freeze())
}

pub(super) fn decode<T: serde::de::DeserializeOwned>(key: &str, value: &[u8]) -> Result<T, StoreError> {
    let version = codec::parse(value).map(|payload| payload.type_version);
    let reason = match version {
        Ok(version) if version > VERSION => {
            format!("record {key:?} has format {version}, this program knows up to {VERSION}; run the newer program")
        }
        _ => match codec::decode(value) {
            Ok(value) => return Ok(value),
            Err(error) => format!("record {key:?}: {error}"),
        },
    };
    Err(StoreError::Format { store: "the journal".to_owned(), reason })
}

/// Version of all records of a partition.
const VERSION: u8 = 1;
