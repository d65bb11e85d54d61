//! JSON, written over as MessagePack: what people send is read by the reader that nodes use.

use std::fmt;

use bytes::{BufMut, BytesMut};
use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};

use super::{Codec, DecodeError};

/// Deepest nesting of a JSON value, which is that of its library.
pub(super) const DEPTH_MAX: usize = 128;

/// The one value in `text`.
pub(super) fn transcode(text: &[u8]) -> Result<BytesMut, DecodeError> {
    let mut out = BytesMut::with_capacity(text.len());
    let mut json = serde_json::Deserializer::from_slice(text);
    let read = Copy(&mut out).deserialize(&mut json);
    if read.is_err() {
        return Err(explained(text));
    }
    json.end().map_err(|_| DecodeError::Trailing)?;
    Ok(out)
}

/// Reads again what could not be read, and says where and why.
#[cold]
fn explained(text: &[u8]) -> DecodeError {
    let mut json = serde_json::Deserializer::from_slice(text);
    let Err(error) = serde_path_to_error::deserialize::<_, Anything>(&mut json) else {
        // The copy refuses nothing else.
        return DecodeError::WrongType { path: ".".into(), what: "a number is out of range".into() };
    };
    let path = error.path().to_string().into();
    let what: Box<str> = error.inner().to_string().into();
    match what.starts_with("recursion limit exceeded") {
        true => DecodeError::TooDeep { path },
        false => DecodeError::Malformed { codec: Codec::Json, path, what },
    }
}

/// Appends the value that it reads.
struct Copy<'a>(&'a mut BytesMut);

impl<'de> DeserializeSeed<'de> for Copy<'_> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Copy<'_> {
    /// Room for the length of a list or map, which is known when it ends.
    fn begin(&mut self, marker: u8) -> usize {
        let at = self.0.len() + 1;
        self.0.put_slice(&[marker, 0, 0, 0, 0]);
        at
    }

    fn end<E: de::Error>(&mut self, at: usize, len: usize) -> Result<(), E> {
        let len = u32::try_from(len).map_err(|_| E::custom("it has too many elements"))?;
        self.0[at..at + 4].copy_from_slice(&len.to_be_bytes());
        Ok(())
    }
}

impl<'de> Visitor<'de> for Copy<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.0.put_u8(0xC0);
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.0.put_u8(0xC2 + u8::from(value));
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.0.put_u8(0xCF);
        self.0.put_u64(value);
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.0.put_u8(0xD3);
        self.0.put_i64(value);
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.0.put_u8(0xCB);
        self.0.put_f64(value);
        Ok(())
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        let len = u32::try_from(text.len()).map_err(|_| E::custom("a text is too long"))?;
        self.0.put_u8(0xDB);
        self.0.put_u32(len);
        self.0.put_slice(text.as_bytes());
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        let (at, mut len) = (self.begin(0xDD), 0);
        while list.next_element_seed(Copy(self.0))?.is_some() {
            len += 1;
        }
        self.end(at, len)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let (at, mut len) = (self.begin(0xDF), 0);
        while map.next_key_seed(Copy(self.0))?.is_some() {
            map.next_value_seed(Copy(self.0))?;
            len += 1;
        }
        self.end(at, len)
    }
}

/// A value that is only looked at. `IgnoredAny` would not do: the library skips over it without a path.
struct Anything;

impl<'de> de::Deserialize<'de> for Anything {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut out = BytesMut::new();
        Copy(&mut out).deserialize(deserializer).map(|()| Self)
    }
}
