//! Records as people see and write them, whatever their types.

use bytes::{Bytes, BytesMut};
use greenroom_wire::codec::{self, Codec};
use serde_json::Value;

use super::record::{self, Author};
use super::{State, Written};

/// Who wrote a record: the activation's epoch, a number of its own, and the number of the write among its.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wrote {
    pub(crate) epoch: u64,
    pub(crate) writer: u64,
    pub(crate) sequence: u64,
}

/// Who wrote `record`, and its payload.
///
/// # Errors
/// Why it is none of a plain state, in words.
pub(crate) fn opened(record: &[u8]) -> Result<(Wrote, &[u8]), String> {
    let (Author { epoch, writer, sequence }, payload) = record::open(record)?;
    Ok((Wrote { epoch, writer, sequence }, payload))
}

/// A payload's value, and the version of its type.
///
/// # Errors
/// Why it cannot be shown as JSON, in words.
pub(crate) fn as_json(payload: &[u8]) -> Result<(u8, Value), String> {
    let mut written = BytesMut::new();
    codec::rewrite(payload, Codec::Json, &mut written).map_err(|error| error.to_string())?;
    let parsed = codec::parse(&written).map_err(|error| error.to_string())?;
    let value = serde_json::from_slice(parsed.value).map_err(|error| error.to_string())?;
    Ok((parsed.type_version, value))
}

/// A record of `payload` that no activation wrote: one of `epoch` that is still there sees somebody else's write in it, and goes on with that.
pub(crate) fn sealed(epoch: u64, writer: u64, payload: &[u8]) -> Bytes {
    record::seal(Author { epoch, writer, sequence: 1 }, payload)
}

/// What somebody has written as JSON, as an `S` writes it while version `in_force` of its type is what all nodes read.
///
/// # Errors
/// Why it is no `S`, in words.
#[doc(hidden)]
pub fn written<S: State>(json: &[u8], in_force: u8) -> Result<Written, String> {
    // By way of the codec in which records are: so it is read by the code that reads those.
    let (mut plain, mut payload) = (BytesMut::new(), BytesMut::new());
    plain.extend_from_slice(&[Codec::Json.tag(), S::VERSION]);
    plain.extend_from_slice(json);
    codec::rewrite(&plain, Codec::MessagePack, &mut payload).map_err(|error| error.to_string())?;
    let value: S = codec::decode(&payload).map_err(|error| error.to_string())?;
    record::encode(&value, in_force).map(Written)
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};
    use serde_json::json;

    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Account {
        balance: i64,
        owner: Option<String>,
    }

    impl State for Account {}

    #[test]
    fn what_is_written_as_json_is_read_as_its_type_and_shown_again() {
        let payload =
            written::<Account>(br#"{"balance": -7, "owner": "ada"}"#, 1).expect("it is an account").into_bytes();
        let record = sealed(3, 9, &payload);
        let (wrote, shown) = opened(&record).expect("a record");
        assert_eq!(wrote, Wrote { epoch: 3, writer: 9, sequence: 1 });
        assert_eq!(as_json(shown), Ok((1, json!({ "balance": -7, "owner": "ada" }))));
    }

    #[test]
    fn what_is_no_value_of_the_type_is_refused() {
        for wrong in [&br#"{"balance": "seven"}"#[..], b"{}", b"7", b"{\"balance\": 7", b""] {
            assert!(written::<Account>(wrong, 1).is_err(), "{}", String::from_utf8_lossy(wrong));
        }
    }
}
