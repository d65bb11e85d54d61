//! Payloads written over in another codec.

use std::fmt;

use base64::prelude::{BASE64_STANDARD, Engine};
use bytes::{BufMut, BytesMut};
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::reader::Form;
use super::{Codec, DecodeError, Payload, decode_as, json, parse};

/// Appends a payload's value in `codec`, whichever it is in; the version of its type stays. In JSON, bytes are base64 and keys that are
/// numbers are spelled out.
///
/// # Errors
/// [`DecodeError`]: it is no payload, or JSON has no such value, as NaN. `out` stays as it was.
pub fn rewrite(payload: &[u8], codec: Codec, out: &mut BytesMut) -> Result<(), DecodeError> {
    let Payload { codec: from, type_version, value } = parse(payload)?;
    if from == codec {
        out.put_slice(payload);
        return Ok(());
    }
    let head = [codec.tag(), type_version];
    match codec {
        Codec::MessagePack => {
            let value = json::transcode(value)?;
            out.put_slice(&head);
            out.put_slice(&value);
        }
        Codec::Json => {
            let Plain(value) = decode_as(value, Form::Compact)?;
            out.put_slice(&head);
            out.put_slice(value.to_string().as_bytes());
        }
    }
    Ok(())
}

/// A value of MessagePack as JSON has it.
struct Plain(Value);

impl<'de> de::Deserialize<'de> for Plain {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self(Value::Null))
    }
}

impl<'de> Visitor<'de> for Plain {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON has")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self, E> {
        Ok(Self(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self, E> {
        Ok(Self(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self, E> {
        Ok(Self(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom(format!("JSON has no number {value}")))?;
        Ok(Self(Value::Number(number)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self, E> {
        Ok(Self(text.into()))
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self, E> {
        Ok(Self(BASE64_STANDARD.encode(bytes).into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self, A::Error> {
        let mut all = Vec::new();
        while let Some(Self(value)) = list.next_element()? {
            all.push(value);
        }
        Ok(Self(all.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self, A::Error> {
        let mut all = Map::new();
        while let Some((Self(key), Self(value))) = entries.next_entry()? {
            let key = match key {
                Value::String(key) => key,
                Value::Number(key) => key.to_string(),
                other => return Err(de::Error::custom(format!("JSON has no key {other}"))),
            };
            all.insert(key, value);
        }
        Ok(Self(all.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{decode, encode};
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
            assert_eq!(decode::<Value>(&written).expect("it is read"), value);
        }
    }

    #[test]
    fn bytes_are_base64_and_keys_are_spelled_out() {
        let mut written = BytesMut::new();
        // {1: h'ff00', -2: h''}
        rewrite(b"\x01\x01\x82\x01\xc4\x02\xff\x00\xfe\xc4\x00", Codec::Json, &mut written).expect("it is written");
        assert_eq!(written, &b"\x02\x01{\"-2\":\"\",\"1\":\"/wA=\"}"[..]);
    }

    #[test]
    fn what_is_no_payload_or_has_no_json_is_refused_by_its_place() {
        let nan = [&b"\x01\x01\x81\xa1a\x91\xcb"[..], &f64::NAN.to_be_bytes()].concat();
        for (payload, to, says) in [
            (&b""[..], Codec::Json, "no codec"),
            (b"\x09\x01\xc0", Codec::Json, "codec 9"),
            (b"\x02\x01{\"a\":{\"b\":]}}", Codec::MessagePack, "`a.b`"),
            (b"\x02\x01{} 1", Codec::MessagePack, "followed by"),
            (b"\x01\x01\x81\xc0\x01", Codec::Json, "no key null"),
            (&nan, Codec::Json, "`a[0]` is wrong: JSON has no number NaN"),
        ] {
            let mut out = BytesMut::from(&b"before"[..]);
            let refused = rewrite(payload, to, &mut out).expect_err("it is refused").to_string();
            assert!(refused.contains(says), "{refused}");
            assert_eq!(out, &b"before"[..]);
        }
    }
}
