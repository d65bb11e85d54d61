//! A deserializer that reads from nothing: it makes values up.

use std::fmt;

use serde::de::{self, DeserializeSeed, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, VariantAccess, Visitor};

/// Makes values up: small numbers and large ones, two strings and the keys that it knows, short lists, each variant.
pub struct Inventor<'a> {
    choose: &'a mut dyn FnMut(usize) -> usize,
    keys: &'a [String],
    depth: usize,
}

/// A value that cannot be made up, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotInvented(pub String);

impl fmt::Display for NotInvented {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotInvented {}

impl de::Error for NotInvented {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

impl<'a> Inventor<'a> {
    /// Asks `choose` for one of so many values each time; strings are mostly one of `keys`.
    pub fn new(choose: &'a mut dyn FnMut(usize) -> usize, keys: &'a [String]) -> Self {
        Self { choose, keys, depth: 0 }
    }

    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[(self.choose)(values.len()) % values.len()]
    }

    fn text(&mut self) -> String {
        let at = (self.choose)(self.keys.len() + STRINGS.len());
        self.keys
            .get(at)
            .cloned()
            .unwrap_or_else(|| STRINGS[at.saturating_sub(self.keys.len()) % STRINGS.len()].to_owned())
    }

    /// Goes into a value that has others inside.
    fn deeper<T>(&mut self, invent: impl FnOnce(&mut Self) -> Result<T, NotInvented>) -> Result<T, NotInvented> {
        if self.depth >= DEPTH_MAX {
            return Err(NotInvented("the type goes on for ever".to_owned()));
        }
        self.depth += 1;
        let invented = invent(self);
        self.depth -= 1;
        invented
    }
}

/// A number of one type: large ones leave room for a few sums.
macro_rules! numbers {
    ($($method:ident $visit:ident $type:ty: $few:expr;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotInvented> {
            let value: $type = self.one_of(&$few);
            visitor.$visit(value)
        })*
    };
}

impl<'de> de::Deserializer<'de> for &mut Inventor<'_> {
    type Error = NotInvented;

    numbers! {
        deserialize_bool visit_bool bool: [true, false];
        deserialize_i8 visit_i8 i8: [1, 2, 0, -1, i8::MAX / 8];
        deserialize_i16 visit_i16 i16: [1, 2, 0, -1, i16::MAX / 8];
        deserialize_i32 visit_i32 i32: [1, 2, 0, -1, 10, i32::MAX / 8, i32::MIN / 8];
        deserialize_i64 visit_i64 i64: [1, 2, 0, -1, 10, i64::MAX / 8, i64::MIN / 8];
        deserialize_i128 visit_i128 i128: [1, 2, 0, -1, 10, i128::MAX / 8];
        deserialize_u8 visit_u8 u8: [1, 2, 0, u8::MAX / 8];
        deserialize_u16 visit_u16 u16: [1, 2, 0, u16::MAX / 8];
        deserialize_u32 visit_u32 u32: [1, 2, 0, 10, u32::MAX / 8];
        deserialize_u64 visit_u64 u64: [1, 2, 0, 10, u64::MAX / 8];
        deserialize_u128 visit_u128 u128: [1, 2, 0, 10, u128::MAX / 8];
        deserialize_f32 visit_f32 f32: [1.0, 0.5, 0.0, -1.0, 1e30];
        deserialize_f64 visit_f64 f64: [1.0, 0.5, 0.0, -1.0, 1e300];
        deserialize_char visit_char char: ['a', 'b', '\u{e4}'];
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, NotInvented> {
        Err(NotInvented("the type does not say what it is made of".to_owned()))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotInvented> {
        visitor.visit_string(self.text())
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotInvented> {
        visitor.visit_string(self.text())
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotInvented> {
        visitor.visit_byte_buf(self.text().into_bytes())
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotInvented> {
        visitor.visit_byte_buf(self.text().into_bytes())
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotInvented> {
        match self.depth < DEPTH_MAX && (self.choose)(2) == 0 {
            true => self.deeper(|this| visitor.visit_some(this)),
            false => visitor.visit_none(),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotInvented> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, NotInvented> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, NotInvented> {
        self.deeper(|this| visitor.visit_newtype_struct(this))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotInvented> {
        let len = if self.depth < DEPTH_MAX { self.one_of(&[1, 2, 0]) } else { 0 };
        self.deeper(|this| visitor.visit_seq(Several { inventor: this, left: len }))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, NotInvented> {
        self.deeper(|this| visitor.visit_seq(Several { inventor: this, left: len }))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, NotInvented> {
        self.deserialize_tuple(len, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotInvented> {
        let len = if self.depth < DEPTH_MAX { self.one_of(&[1, 0]) } else { 0 };
        self.deeper(|this| visitor.visit_map(Several { inventor: this, left: len }))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NotInvented> {
        self.deserialize_tuple(fields.len(), visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NotInvented> {
        let variant = (self.choose)(variants.len().max(1)) as u32;
        self.deeper(|this| visitor.visit_enum(Variant { inventor: this, variant }))
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotInvented> {
        self.deserialize_any(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotInvented> {
        visitor.visit_unit()
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// So many values in a row.
struct Several<'i, 'a> {
    inventor: &'i mut Inventor<'a>,
    left: usize,
}

impl<'de> SeqAccess<'de> for Several<'_, '_> {
    type Error = NotInvented;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, NotInvented> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(&mut *self.inventor).map(Some)
    }
}

impl<'de> MapAccess<'de> for Several<'_, '_> {
    type Error = NotInvented;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, NotInvented> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(&mut *self.inventor).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, NotInvented> {
        seed.deserialize(&mut *self.inventor)
    }
}

/// One variant of an enum.
struct Variant<'i, 'a> {
    inventor: &'i mut Inventor<'a>,
    variant: u32,
}

impl<'de, 'i, 'a> EnumAccess<'de> for Variant<'i, 'a> {
    type Error = NotInvented;
    type Variant = &'i mut Inventor<'a>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self::Variant), NotInvented> {
        let variant: de::value::U32Deserializer<NotInvented> = self.variant.into_deserializer();
        Ok((seed.deserialize(variant)?, self.inventor))
    }
}

impl<'de> VariantAccess<'de> for &mut Inventor<'_> {
    type Error = NotInvented;

    fn unit_variant(self) -> Result<(), NotInvented> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, NotInvented> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, NotInvented> {
        de::Deserializer::deserialize_tuple(self, len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NotInvented> {
        de::Deserializer::deserialize_tuple(self, fields.len(), visitor)
    }
}

const STRINGS: &[&str] = &["a", "b"];
/// How deep values are made up.
const DEPTH_MAX: usize = 12;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize, PartialEq, Debug)]
    enum Order {
        Empty,
        Of(u64, String),
        Named { goods: Vec<Option<i32>>, notes: BTreeMap<String, bool> },
    }

    fn invented<T: de::DeserializeOwned>(mut choose: impl FnMut(usize) -> usize) -> Result<T, NotInvented> {
        T::deserialize(&mut Inventor::new(&mut choose, &["ada".to_owned()]))
    }

    #[test]
    fn each_variant_can_be_made_up() {
        assert_eq!(invented(|_| 0), Ok(Order::Empty));
        let mut chosen = [1, 3, 0].into_iter();
        assert_eq!(invented(|_| chosen.next().unwrap_or(0)), Ok(Order::Of(10, "ada".to_owned())));
        let mut chosen = [2, 0, 1].into_iter();
        let notes = BTreeMap::from([("ada".to_owned(), true)]);
        assert_eq!(invented(|_| chosen.next().unwrap_or(0)), Ok(Order::Named { goods: vec![None], notes }));
    }

    #[test]
    fn what_goes_on_for_ever_is_refused() {
        #[derive(Deserialize, Debug)]
        struct Tree(#[expect(dead_code, reason = "it is never made")] Box<Tree>);
        assert!(invented::<Tree>(|_| 0).is_err_and(|error| error.0.contains("for ever")));
        assert!(invented::<serde_json::Value>(|_| 0).is_err_and(|error| error.0.contains("made of")));
    }
}
