//! Payloads: `codec: u8`, `type version: u8`, the value.
//!
//! Both codecs write structs with the names of their fields, so a reader skips fields that it does not know and
//! `#[serde(default)]` fills those that are missing. The type version is the sender's: [`parse`] gives it to readers
//! for which names are not enough.
//!
//! Texts and bytes are taken only when they are there. For a list, serde reserves what its length declares, but at most
//! 1 MiB before the elements come.

mod fault;
mod json;
mod reader;
mod rewrite;
mod token;

use std::cell::Cell;
use std::{fmt, io};

use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use self::reader::{Form, Reader};

use crate::error::EncodeError;
use crate::limit::DEPTH_MAX;

pub use self::rewrite::rewrite;

/// How a value is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Codec {
    /// MessagePack with named fields: what nodes speak.
    #[default]
    MessagePack,
    /// JSON: what people and outside clients speak.
    Json,
}

impl Codec {
    /// The byte on the wire.
    pub const fn tag(self) -> u8 {
        match self {
            Self::MessagePack => 1,
            Self::Json => 2,
        }
    }

    /// Its name, for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MessagePack => "MessagePack",
            Self::Json => "JSON",
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A payload's parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Payload<'a> {
    /// How the value is written.
    pub codec: Codec,
    /// The sender's version of the value's type.
    pub type_version: u8,
    /// The value.
    pub value: &'a [u8],
}

/// Appends `value` as a payload.
///
/// # Errors
/// [`EncodeError::Value`]; `batch` then ends in a part of the value, which [`Encoder`](crate::Encoder) removes.
#[inline]
pub fn encode<T: Serialize + ?Sized>(
    codec: Codec,
    type_version: u8,
    value: &T,
    batch: &mut BytesMut,
) -> Result<(), EncodeError> {
    batch.put_slice(&[codec.tag(), type_version]);
    match codec {
        Codec::MessagePack => encode_message_pack(value, batch),
        Codec::Json => serde_json::to_writer(Appending(batch), value).map_err(|error| value_error(codec, &error)),
    }
}

/// What `write` writes, in bytes that are no more than it takes.
///
/// # Errors
/// Those of `write`.
pub fn written<E>(write: impl FnOnce(&mut BytesMut) -> Result<(), E>) -> Result<Bytes, E> {
    looked_at(write, Bytes::copy_from_slice)
}

/// What `look` makes of what `write` writes, which is gone then.
///
/// # Errors
/// Those of `write`.
pub fn looked_at<T, E>(
    write: impl FnOnce(&mut BytesMut) -> Result<(), E>,
    look: impl FnOnce(&[u8]) -> T,
) -> Result<T, E> {
    thread_local! {
        static DRAFT: Cell<BytesMut> = Cell::default();
    }
    // Who writes inside of `write` finds another one.
    let mut draft = DRAFT.take();
    let written = write(&mut draft);
    let looked = written.map(|()| look(&draft));
    if draft.capacity() <= DRAFT_BYTES_MAX {
        draft.clear();
        DRAFT.set(draft);
    }
    looked
}

/// Splits a payload.
///
/// # Errors
/// [`DecodeError::Empty`], [`DecodeError::UnknownCodec`].
#[inline]
pub fn parse(payload: &[u8]) -> Result<Payload<'_>, DecodeError> {
    let (&[tag, type_version], value) = payload.split_first_chunk().ok_or(DecodeError::Empty)?;
    let codec = match tag {
        1 => Codec::MessagePack,
        2 => Codec::Json,
        tag => return Err(DecodeError::UnknownCodec { tag }),
    };
    Ok(Payload { codec, type_version, value })
}

/// Reads a payload's value, whatever its codec and type version.
///
/// # Errors
/// [`DecodeError`]; one for a wrong field names the path to it.
#[inline]
pub fn decode<T: DeserializeOwned>(payload: &[u8]) -> Result<T, DecodeError> {
    let Payload { codec, value, .. } = parse(payload)?;
    match codec {
        Codec::MessagePack => decode_as(value, Form::Compact),
        Codec::Json => decode_as(&json::transcode(value)?, Form::Readable),
    }
}

fn decode_as<T: DeserializeOwned>(bytes: &[u8], form: Form) -> Result<T, DecodeError> {
    let (codec, depth) = match form {
        Form::Readable => (Codec::Json, json::DEPTH_MAX),
        Form::Compact | Form::Octets => (Codec::MessagePack, DEPTH_MAX),
    };
    let mut reader = Reader::new(bytes, form, depth);
    match T::deserialize(&mut reader) {
        Ok(_) if !reader.is_at_end() => Err(DecodeError::Trailing),
        Ok(value) => Ok(value),
        Err(fault) => Err(fault.at(codec, &reader.place())),
    }
}

/// What is wrong with a payload. Its sender is at fault; nothing was changed, and a retry would end the same way.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// No room for the codec and the type version.
    #[error("payload has no codec and type version; write it with this crate's codec")]
    Empty,
    /// The codec is not known.
    #[error("payload has codec {tag}, which this node does not know; send MessagePack (1) or JSON (2)")]
    UnknownCodec {
        /// The codec's byte.
        tag: u8,
    },
    /// The bytes are not a value of the codec.
    #[error("value is not well-formed {codec} at `{path}`: {what}; the sender's encoder is broken")]
    Malformed {
        /// The codec.
        codec: Codec,
        /// The path of field names and indices to where it ends; `.` is the value itself.
        path: Box<str>,
        /// What is wrong.
        what: Box<str>,
    },
    /// The bytes are a value, but not of the type.
    #[error("`{path}` is wrong: {what}; send the type that the receiver declares")]
    WrongType {
        /// The path of field names and indices to what is wrong; `.` is the value itself.
        path: Box<str>,
        /// What is wrong.
        what: Box<str>,
    },
    /// The value is nested too deeply.
    #[error("value is nested over the limit at `{path}`; send a flatter one")]
    TooDeep {
        /// The path of field names and indices to the limit.
        path: Box<str>,
    },
    /// Something follows the value.
    #[error("value is followed by more bytes; send one value a payload")]
    Trailing,
}

#[inline]
pub(crate) fn encode_message_pack<T: Serialize + ?Sized>(value: &T, batch: &mut BytesMut) -> Result<(), EncodeError> {
    let mut serializer = rmp_serde::Serializer::new(Appending(batch)).with_struct_map();
    value.serialize(&mut serializer).map_err(|error| value_error(Codec::MessagePack, &error))
}

/// Reads the MessagePack value that `bytes` begin with.
pub(crate) fn decode_message_pack_prefix<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    let mut reader = Reader::new(bytes, Form::Compact, DEPTH_MAX);
    T::deserialize(&mut reader).map_err(|fault| fault.at(Codec::MessagePack, &reader.place()))
}

/// Appends to a batch what a serializer writes, mostly a byte or a few at a time: compiled into it, as [`BufMut::writer`] is not.
struct Appending<'a>(&'a mut BytesMut);

impl io::Write for Appending<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cold]
fn value_error(codec: Codec, error: &dyn fmt::Display) -> EncodeError {
    EncodeError::Value { codec: codec.name(), what: error.to_string().into() }
}

/// Room that is kept for what is written next.
const DRAFT_BYTES_MAX: usize = 64 << 10;
