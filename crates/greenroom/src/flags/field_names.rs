//! Names of the fields that a type is read from, as its derived `Deserialize` asks for them.

use serde::de::value::Error;
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// Returns the names of all fields of `T`, also of those that are optional or left out when it is written; none if it is no struct.
pub(super) fn field_names<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    let mut names: &'static [&'static str] = &[];
    // It ends with the error that stops it.
    let _ = T::deserialize(FieldRecorder(&mut names));
    names
}

/// Records the fields that a struct asks for, and has no value for them.
struct FieldRecorder<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for FieldRecorder<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("it is no struct"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        Err(Error::custom("its fields are known"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq
        tuple tuple_struct map enum identifier ignored_any
    }
}
