//! What is written into the topic of states: records by key, of which Kafka keeps the last one.

use bytes::Bytes;
use greenroom_store::{Version, Versioned};

use crate::command::{FORMAT, Unreadable};

/// Which part of a slice a record is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum RecordKey {
    /// A key of the store.
    Row(String),
    /// Where a log begins.
    Head(String),
    /// An entry of a log.
    Entry(String, u64),
    /// Of which claim the checkpoint is.
    Checkpoint,
}

/// What it says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Record {
    Row(Versioned),
    Head { trimmed: u64 },
    Entry(Bytes),
    Checkpoint { claim: i64 },
}

impl RecordKey {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Row(key) => [b"k", key.as_bytes()].concat(),
            Self::Head(name) => [b"h", name.as_bytes()].concat(),
            Self::Entry(name, position) => [b"e", &position.to_be_bytes()[..], name.as_bytes()].concat(),
            Self::Checkpoint => b"c".to_vec(),
        }
    }

    /// # Errors
    /// [`Unreadable`].
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Unreadable> {
        let foreign = || Unreadable::Foreign("it has a key that this program does not know".to_owned());
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| foreign());
        match bytes.split_first().ok_or_else(foreign)? {
            (b'k', key) => text(key).map(Self::Row),
            (b'h', name) => text(name).map(Self::Head),
            (b'e', rest) => {
                let (position, name) = rest.split_first_chunk().ok_or_else(foreign)?;
                Ok(Self::Entry(text(name)?, u64::from_be_bytes(*position)))
            }
            (b'c', []) => Ok(Self::Checkpoint),
            _ => Err(foreign()),
        }
    }
}

impl Record {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Row(Versioned { value, version }) => {
                let version = version.as_str().as_bytes();
                [&[FORMAT, version.len() as u8], version, value].concat()
            }
            Self::Head { trimmed } => [&[FORMAT][..], &trimmed.to_be_bytes()].concat(),
            Self::Entry(value) => [&[FORMAT][..], value].concat(),
            Self::Checkpoint { claim } => [&[FORMAT][..], &claim.to_be_bytes()].concat(),
        }
    }

    /// # Errors
    /// [`Unreadable`].
    pub(crate) fn decode(key: &RecordKey, bytes: &[u8]) -> Result<Self, Unreadable> {
        let foreign = || Unreadable::Foreign("it is cut short".to_owned());
        let rest = match bytes.split_first() {
            Some((&FORMAT, rest)) => rest,
            Some((&newer, _)) if newer > FORMAT => return Err(Unreadable::Newer(newer)),
            _ => return Err(foreign()),
        };
        match key {
            RecordKey::Row(_) => {
                let (length, rest) = rest.split_first().ok_or_else(foreign)?;
                let (version, value) = rest.split_at_checked(usize::from(*length)).ok_or_else(foreign)?;
                let version = String::from_utf8(version.to_vec()).map_err(|_| foreign())?;
                Ok(Self::Row(Versioned { value: Bytes::copy_from_slice(value), version: Version::new(version) }))
            }
            RecordKey::Head(_) => {
                Ok(Self::Head { trimmed: u64::from_be_bytes(rest.try_into().map_err(|_| foreign())?) })
            }
            RecordKey::Entry(..) => Ok(Self::Entry(Bytes::copy_from_slice(rest))),
            RecordKey::Checkpoint => {
                Ok(Self::Checkpoint { claim: i64::from_be_bytes(rest.try_into().map_err(|_| foreign())?) })
            }
        }
    }
}
