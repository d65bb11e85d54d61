//! What a state is in the store: who wrote it, then the value as a payload with its codec and type version.

use bytes::{BufMut, Bytes, BytesMut};
use greenroom_wire::codec::{self, Codec, Payload};

use super::{Old, Older, State, StateError, Written};

/// Who wrote a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Author {
    /// The activation's number among the actor's: it only rises.
    pub(super) epoch: u64,
    /// Drawn by chance for each activation.
    pub(super) writer: u64,
    /// The number of the write among the activation's.
    pub(super) sequence: u64,
}

/// The value as a payload, while version `in_force` of its type is what all nodes read.
pub(super) fn encode<S: State>(value: &S, in_force: u8) -> Result<BytesMut, String> {
    let version = super::versions::<S>().written(in_force);
    if version < S::VERSION {
        return value.write_older(Older { version }).map(|Written(payload)| payload);
    }
    let mut payload = BytesMut::new();
    codec::encode(Codec::MessagePack, S::VERSION, value, &mut payload).map_err(|error| error.to_string())?;
    Ok(payload)
}

/// A whole record.
pub(super) fn seal(author: Author, payload: &[u8]) -> Bytes {
    let mut record = BytesMut::with_capacity(HEAD_BYTES + payload.len());
    record.put_u8(FORMAT);
    record.put_u64_le(author.epoch);
    record.put_u64_le(author.writer);
    record.put_u64_le(author.sequence);
    record.put_slice(payload);
    record.freeze()
}

/// The author and the payload of a record.
pub(super) fn open(record: &[u8]) -> Result<(Author, &[u8]), String> {
    let Some((&format, rest)) = record.split_first() else {
        return Err("the record is empty; it was not written by Greenroom".to_owned());
    };
    if format != FORMAT {
        return Err(format!(
            "the record has format {format}, this program knows {FORMAT}; run a program that is as new as the record"
        ));
    }
    let mut words = rest.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
    let (Some(epoch), Some(writer), Some(sequence)) = (words.next(), words.next(), words.next()) else {
        return Err("the record ends early; it was not written by Greenroom".to_owned());
    };
    Ok((Author { epoch, writer, sequence }, &record[HEAD_BYTES..]))
}

/// The value of a payload of the state called `state`, whatever version of its type wrote it.
pub(super) fn decode<S: State>(state: &str, payload: &[u8]) -> Result<S, StateError> {
    let not_loaded = |why: String| StateError::not_loaded(state, why);
    let Payload { type_version, .. } = codec::parse(payload).map_err(|error| not_loaded(error.to_string()))?;
    if type_version == S::VERSION {
        return codec::decode(payload).map_err(|error| not_loaded(error.to_string()));
    }
    if type_version > S::VERSION {
        return Err(StateError::Newer { state: state.to_owned(), wrote: type_version, reads: S::VERSION });
    }
    S::migrate(Old { payload, version: type_version }).map_err(not_loaded)
}

const FORMAT: u8 = 1;
const HEAD_BYTES: usize = 1 + 3 * 8;
