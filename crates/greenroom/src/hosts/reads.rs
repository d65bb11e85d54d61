//! Which codecs a host reads. What it is sent is written over where it reads one only, and what it says where its caller asked in the
//! other one.

use std::borrow::Cow;

use base64::prelude::{BASE64_STANDARD, Engine};
use bytes::{Bytes, BytesMut};
use greenroom_wire::codec::{self, Codec, DecodeError};
use greenroom_wire::host::{Fields, FieldsWriter, Form};
use greenroom_wire::{EncodeError, Status};
use serde::{Deserialize, Deserializer};

use crate::actor::error::Failure;
use crate::actor::reply::encode_failure;

/// The codecs that a host reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reads {
    Both,
    Only(Codec),
}

/// Why what is kept of an actor cannot be written as its host reads it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unwritten {
    /// The host's codec has no such value, or it is no value.
    #[error(transparent)]
    Value(#[from] DecodeError),
    /// A field is over a bound of the frame.
    #[error(transparent)]
    Field(#[from] EncodeError),
}

impl Reads {
    /// What a Hello says; `None` if the node knows none of it.
    pub(super) fn of(codecs: &[u8]) -> Option<Self> {
        match [Codec::MessagePack, Codec::Json].map(|codec| codecs.contains(&codec.tag())) {
            [true, true] => Some(Self::Both),
            [true, false] => Some(Self::Only(Codec::MessagePack)),
            [false, true] => Some(Self::Only(Codec::Json)),
            [false, false] => None,
        }
    }

    /// What it is given where there is a choice.
    pub(super) fn first(self) -> Codec {
        match self {
            Self::Both => Codec::MessagePack,
            Self::Only(codec) => codec,
        }
    }

    /// `payload` in a codec that the host reads.
    ///
    /// # Errors
    /// The other one has no such value, or it is no value.
    pub(super) fn written(self, payload: &[u8]) -> Result<Cow<'_, [u8]>, DecodeError> {
        match self {
            Self::Only(codec) if payload.first().is_some_and(|tag| *tag != codec.tag()) => {
                let mut out = BytesMut::new();
                codec::rewrite(payload, codec, &mut out)?;
                Ok(Cow::Owned(out.into()))
            }
            _ => Ok(Cow::Borrowed(payload)),
        }
    }

    /// What a host is told of a failure.
    pub(super) fn failure(self, failure: &Failure) -> (Status, Bytes) {
        let (status, payload) = encode_failure(failure);
        // Failures are texts and numbers, which both codecs have.
        let written = self.written(&payload).map(|written| Bytes::copy_from_slice(&written));
        (status, written.unwrap_or_default())
    }

    /// All values in `fields` in codecs that the host reads; `None` where they are so already.
    ///
    /// # Errors
    /// A value as for [`Reads::written`], or a field that cannot be appended: none is left out.
    pub(super) fn written_fields(self, fields: Fields<'_>) -> Result<Option<FieldsWriter>, Unwritten> {
        let Self::Only(_) = self else { return Ok(None) };
        let mut out = FieldsWriter::new();
        for (name, form) in fields.iter() {
            match form {
                Form::Whole(value) => out.whole(name, &self.written(value)?)?,
                Form::Entries(entries) => {
                    let mut written = Vec::with_capacity(entries.len());
                    for (entry, value) in entries.iter() {
                        written.push((entry, value.map(|value| self.written(value)).transpose()?));
                    }
                    out.entries(name, written.iter().map(|(entry, value)| (*entry, value.as_deref())))?;
                }
            }
        }
        Ok(Some(out))
    }
}

/// What a turn has ended in, in the codec of its arguments.
///
/// # Errors
/// That codec has no such value, or it is no value.
pub(super) fn in_codec_of(arguments: &[u8], payload: Bytes) -> Result<Bytes, DecodeError> {
    let Ok(codec) = codec::parse(arguments).map(|arguments| arguments.codec) else { return Ok(payload) };
    match Reads::Only(codec).written(&payload)? {
        Cow::Owned(written) => Ok(written.into()),
        Cow::Borrowed(_) => Ok(payload),
    }
}

/// Bytes in a map of parameters: in JSON they are base64.
pub(super) fn octets<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    if !deserializer.is_human_readable() {
        return serde_bytes::deserialize(deserializer);
    }
    let text = String::deserialize(deserializer)?;
    BASE64_STANDARD.decode(text).map_err(|error| serde::de::Error::custom(format!("it is no base64: {error}")))
}
