//! One change of an entry, and what can be wrong with one.

use bytes::{Bytes, BytesMut};
use greenroom_wire::codec::{self, Codec};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// An entry of a field, as the next commit is to leave it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// Its name within the field; empty where the field is one entry.
    pub entry: String,
    /// Its value; `None` if it is gone.
    pub value: Option<Bytes>,
}

/// Why a field's entry cannot be read or written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FieldError {
    /// The stored bytes are not of the field's type.
    #[error("entry {entry:?} cannot be read: {reason}; run a program whose types know what was written")]
    Unreadable {
        /// Its name.
        entry: String,
        /// What is wrong.
        reason: String,
    },
    /// The value has no encoding.
    #[error("a value cannot be written: {reason}")]
    Unwritable {
        /// What is wrong.
        reason: String,
    },
    /// The key of a map or set is too long for the journal.
    #[error("a key of a map has {bytes} bytes when written, at most {KEY_BYTES_MAX} are allowed; use a shorter one")]
    LongKey {
        /// Its size.
        bytes: usize,
    },
}

pub(super) fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Bytes, FieldError> {
    encoded(value, Bytes::copy_from_slice)
}

/// What `look` makes of a value's encoding.
pub(super) fn encoded<T: Serialize + ?Sized, R>(value: &T, look: impl FnOnce(&[u8]) -> R) -> Result<R, FieldError> {
    let write = |out: &mut BytesMut| codec::encode(Codec::MessagePack, TYPE_VERSION, value, out);
    codec::looked_at(write, look).map_err(|error| FieldError::Unwritable { reason: error.to_string() })
}

pub(super) fn decode<T: DeserializeOwned>(entry: &str, value: &[u8]) -> Result<T, FieldError> {
    codec::decode(value).map_err(|error| FieldError::Unreadable { entry: entry.to_owned(), reason: error.to_string() })
}

/// The name of a key's entry: its encoding in hexadecimal digits, so that every engine holds it.
pub(super) fn name_of<K: Serialize>(key: &K) -> Result<String, FieldError> {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    encoded(key, |encoded| {
        if encoded.len() > KEY_BYTES_MAX {
            return Err(FieldError::LongKey { bytes: encoded.len() });
        }
        let mut name = String::with_capacity(encoded.len() * 2);
        name.extend(encoded.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
        Ok(name)
    })?
}

/// Longest key of a map or set, as written, in bytes.
pub(super) const KEY_BYTES_MAX: usize = 128;
const TYPE_VERSION: u8 = 1;
