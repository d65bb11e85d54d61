//! Payloads written over in another codec.

use bytes::{BufMut, BytesMut};

use super::{Codec, Payload, decode, json, parse, value_error};
use crate::error::EncodeError;

/// Appends a payload's value in `codec`, whichever it is in; the version of its type stays.
///
/// # Errors
/// [`EncodeError::Value`]: it is no payload, or JSON has no such value: bytes that are no text, maps whose keys are none.
pub fn rewrite(payload: &[u8], codec: Codec, out: &mut BytesMut) -> Result<(), EncodeError> {
    let Payload { codec: from, type_version, value } = parse(payload).map_err(|error| value_error(codec, &error))?;
    if from == codec {
        out.put_slice(payload);
        return Ok(());
    }
    out.put_slice(&[codec.tag(), type_version]);
    match codec {
        Codec::MessagePack => out.put_slice(&json::transcode(value).map_err(|error| value_error(codec, &error))?),
        Codec::Json => {
            let value: serde_json::Value = decode(payload).map_err(|error| value_error(codec, &error))?;
            serde_json::to_writer(out.writer(), &value).map_err(|error| value_error(codec, &error))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::encode;
    use super::*;

    #[test]
    fn a_value_is_the_same_in_the_other_codec_and_back() {
        let value = serde_json::json!({"a": [1, -2, 0.5, null, true], "b": {"c": u64::MAX}});
        for (from, to) in
            [(Codec::MessagePack, Codec::Json), (Codec::Json, Codec::MessagePack), (Codec::Json, Codec::Json)]
        {
            let (mut payload, mut written) = (BytesMut::new(), BytesMut::new());
            encode(from, 3, &value, &mut payload).expect("it encodes");
            rewrite(&payload, to, &mut written).expect("it can be written");
            let parsed = parse(&written).expect("it is a payload");
            assert_eq!((parsed.codec, parsed.type_version), (to, 3));
            assert_eq!(decode::<serde_json::Value>(&written).expect("it is read"), value);
        }
    }

    #[test]
    fn what_is_no_payload_is_refused() {
        for payload in [&b""[..], b"\x09\x01\xc0", b"\x02\x01{", b"\x01\x01\xc4\x01\xff"] {
            assert!(
                rewrite(
                    payload,
                    if payload.first() == Some(&2) { Codec::MessagePack } else { Codec::Json },
                    &mut BytesMut::new()
                )
                .is_err()
            );
        }
    }
}
