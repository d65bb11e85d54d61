//! Reads MessagePack for serde.
//!
//! There is one reader, without type parameters, so that each type of value is compiled for it once, and in it as little
//! as can be depends on the type: the bytes are taken apart into tokens by code that all types share. Where a value is
//! wrong is found from the place at which reading ended.

use serde::de::{self, DeserializeSeed, Expected, Unexpected, Visitor};

use super::fault::{Fault, Place};
use super::token::Token;

/// A reader of the values in some bytes.
pub(super) struct Reader<'de> {
    bytes: &'de [u8],
    next: usize,
    /// Where the value begins that was read last: what is wrong is there.
    at: usize,
    /// Levels of nesting that are left.
    depth: usize,
    form: Form,
    /// Whether what comes is the key of a map.
    is_key: bool,
}

/// What the bytes are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// MessagePack as nodes write it: types choose their compact forms.
    Compact,
    /// What was JSON: types choose the forms that people read, and keys of maps are texts.
    Readable,
    /// No MessagePack, but numbers of one byte: a list that was written as bytes.
    Octets,
}

impl<'de> Reader<'de> {
    pub(super) fn new(bytes: &'de [u8], form: Form, depth: usize) -> Self {
        Self { bytes, next: 0, at: 0, depth, form, is_key: false }
    }

    /// Whether all is read.
    pub(super) fn is_at_end(&self) -> bool {
        self.next == self.bytes.len()
    }

    /// Where reading ended that came to an error.
    pub(super) fn place(&self) -> Place<'de> {
        Place { bytes: self.bytes, at: self.at }
    }

    fn token(&mut self) -> Result<Token<'de>, Fault> {
        self.at = self.next;
        self.is_key = false;
        if self.form == Form::Octets {
            let octet = *self.bytes.get(self.next).ok_or_else(Fault::cut)?;
            self.next += 1;
            return Ok(Token::Unsigned(octet.into()));
        }
        let (token, next) = Token::read(self.bytes, self.next)?;
        self.next = next;
        Ok(token)
    }

    /// A number: in what was JSON also one that is spelled out as the key of a map.
    fn number(&mut self) -> Result<Token<'de>, Fault> {
        let is_key = self.is_key;
        let token = self.token()?;
        Ok(match token {
            Token::Text(text) if is_key => Token::spelled(text).unwrap_or(token),
            token => token,
        })
    }

    #[cold]
    fn wrong(&self, token: &Token<'_>, expected: &dyn Expected) -> Fault {
        de::Error::invalid_type(token.unexpected(), expected)
    }

    fn enter(&mut self) -> Result<(), Fault> {
        self.depth = self.depth.checked_sub(1).ok_or_else(Fault::too_deep)?;
        Ok(())
    }

    fn leave(&mut self, at: usize, left: u32) -> Result<(), Fault> {
        self.depth += 1;
        self.at = at;
        if left == 0 { Ok(()) } else { Err(Fault::wrong(format!("it has {left} elements too many"))) }
    }

    fn list<V: Visitor<'de>>(&mut self, len: u32, visitor: V) -> Result<V::Value, Fault> {
        let at = self.at;
        self.enter()?;
        let mut elements = Elements { reader: self, at, left: len };
        let value = visitor.visit_seq(&mut elements)?;
        let left = elements.left;
        self.leave(at, left)?;
        Ok(value)
    }

    fn map<V: Visitor<'de>>(&mut self, len: u32, visitor: V) -> Result<V::Value, Fault> {
        let at = self.at;
        self.enter()?;
        let mut elements = Elements { reader: self, at, left: len };
        let value = visitor.visit_map(&mut elements)?;
        let left = elements.left;
        self.leave(at, left)?;
        Ok(value)
    }

    fn octets<V: Visitor<'de>>(&mut self, bytes: &'de [u8], visitor: V) -> Result<V::Value, Fault> {
        let mut inner = Reader::new(bytes, Form::Octets, self.depth);
        let len = u32::try_from(bytes.len()).map_err(|_| Fault::cut())?;
        inner.list(len, visitor)
    }

    fn any<V: Visitor<'de>>(&mut self, token: Token<'de>, visitor: V) -> Result<V::Value, Fault> {
        match token {
            Token::Nil => visitor.visit_unit(),
            Token::Bool(value) => visitor.visit_bool(value),
            Token::Unsigned(value) => visitor.visit_u64(value),
            Token::Signed(value) => visitor.visit_i64(value),
            Token::Single(value) => visitor.visit_f32(value),
            Token::Double(value) => visitor.visit_f64(value),
            Token::Text(text) => visitor.visit_borrowed_str(text),
            Token::Bytes(bytes) => visitor.visit_borrowed_bytes(bytes),
            Token::List(len) => self.list(len, visitor),
            Token::Map(len) => self.map(len, visitor),
            Token::Extension => Err(self.wrong(&token, &visitor)),
        }
    }

    /// A number of 128 bits, as the bits of a signed one.
    fn wide(&mut self, is_signed: bool, expected: &dyn Expected) -> Result<i128, Fault> {
        let token = self.number()?;
        let found = match token {
            Token::Unsigned(value) => Some(value.into()),
            Token::Signed(value) if is_signed => Some(value.into()),
            Token::Bytes(bytes) => bytes.try_into().ok().map(i128::from_be_bytes),
            // JSON has no numbers so large.
            Token::Text(text) if self.form == Form::Readable && is_signed => text.parse().ok(),
            Token::Text(text) if self.form == Form::Readable => text.parse().ok().map(u128::cast_signed),
            _ => None,
        };
        found.ok_or_else(|| self.wrong(&token, expected))
    }

    /// Passes over one value.
    fn skip(&mut self) -> Result<(), Fault> {
        // How many values are still to come on each level; the value itself is the first.
        let mut levels = vec![1_u64];
        while let Some(left) = levels.last_mut() {
            if *left == 0 {
                levels.pop();
                continue;
            }
            *left -= 1;
            let len = match self.token()? {
                Token::List(len) => u64::from(len),
                Token::Map(len) => 2 * u64::from(len),
                _ => continue,
            };
            if levels.len() > self.depth {
                return Err(Fault::too_deep());
            }
            levels.push(len);
        }
        Ok(())
    }
}

macro_rules! numbers {
    ($($name:ident),*) => {$(
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            let token = self.number()?;
            self.any(token, visitor)
        }
    )*};
}

macro_rules! as_any {
    ($($name:ident),*) => {$(
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            let token = self.token()?;
            self.any(token, visitor)
        }
    )*};
}

impl<'de> de::Deserializer<'de> for &mut Reader<'de> {
    type Error = Fault;

    fn is_human_readable(&self) -> bool {
        self.form == Form::Readable
    }

    as_any!(deserialize_any, deserialize_str, deserialize_string, deserialize_char, deserialize_unit);
    numbers!(deserialize_bool, deserialize_f32, deserialize_f64);
    numbers!(deserialize_u8, deserialize_u16, deserialize_u32, deserialize_u64);
    numbers!(deserialize_i8, deserialize_i16, deserialize_i32, deserialize_i64);

    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let value = self.wide(true, &visitor)?;
        visitor.visit_i128(value)
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let value = self.wide(false, &visitor)?;
        visitor.visit_u128(value.cast_unsigned())
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_any(visitor)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        if self.form != Form::Octets && self.bytes.get(self.next) == Some(&Token::NIL) {
            self.token()?;
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        match self.token()? {
            Token::Nil | Token::List(0) => visitor.visit_unit(),
            token => Err(self.wrong(&token, &visitor)),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.token()? {
            Token::List(len) => self.list(len, visitor),
            Token::Bytes(bytes) => self.octets(bytes, visitor),
            token => Err(self.wrong(&token, &visitor)),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.token()? {
            Token::Map(len) => self.map(len, visitor),
            token => Err(self.wrong(&token, &visitor)),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.token()? {
            Token::Map(len) => self.map(len, visitor),
            Token::List(len) => self.list(len, visitor),
            token => Err(self.wrong(&token, &visitor)),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let start = self.next;
        match self.token()? {
            Token::Map(1) => {
                self.enter()?;
                let value = visitor.visit_enum(Variant { reader: self, is_bare: false })?;
                self.leave(start, 0)?;
                Ok(value)
            }
            Token::Text(_) | Token::Unsigned(_) => {
                self.next = start;
                visitor.visit_enum(Variant { reader: self, is_bare: true })
            }
            token => Err(self.wrong(&token, &visitor)),
        }
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.token()? {
            Token::Text(text) => visitor.visit_borrowed_str(text),
            Token::Bytes(bytes) => visitor.visit_borrowed_bytes(bytes),
            Token::Unsigned(index) => visitor.visit_u64(index),
            token => Err(self.wrong(&token, &visitor)),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.skip()?;
        visitor.visit_unit()
    }
}

/// What is left of a list or a map.
struct Elements<'a, 'de> {
    reader: &'a mut Reader<'de>,
    /// Where it begins.
    at: usize,
    left: u32,
}

impl Elements<'_, '_> {
    /// Whether there is another one. When there is none, what may be wrong from here on is the whole.
    fn advance(&mut self) -> bool {
        if self.left == 0 {
            self.reader.at = self.at;
            return false;
        }
        self.left -= 1;
        true
    }

    /// No more than can be there.
    fn hint(&self) -> usize {
        (self.left as usize).min(self.reader.bytes.len() - self.reader.next)
    }
}

impl<'de> de::SeqAccess<'de> for &mut Elements<'_, 'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        if self.advance() { seed.deserialize(&mut *self.reader).map(Some) } else { Ok(None) }
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.hint())
    }
}

impl<'de> de::MapAccess<'de> for &mut Elements<'_, 'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        if !self.advance() {
            return Ok(None);
        }
        self.reader.is_key = self.reader.form == Form::Readable;
        seed.deserialize(&mut *self.reader).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        seed.deserialize(&mut *self.reader)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.hint())
    }
}

/// One variant of an enum: its name or number, and behind it what it holds unless it is bare.
struct Variant<'a, 'de> {
    reader: &'a mut Reader<'de>,
    is_bare: bool,
}

impl Variant<'_, '_> {
    fn check(&self, expected: &'static str) -> Result<(), Fault> {
        match self.is_bare {
            true => Err(de::Error::invalid_type(Unexpected::UnitVariant, &expected)),
            false => Ok(()),
        }
    }
}

impl<'de> de::EnumAccess<'de> for Variant<'_, 'de> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Fault> {
        let variant = seed.deserialize(&mut *self.reader)?;
        Ok((variant, self))
    }
}

impl<'de> de::VariantAccess<'de> for Variant<'_, 'de> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        if self.is_bare {
            return Ok(());
        }
        match self.reader.token()? {
            Token::Nil => Ok(()),
            token => Err(self.reader.wrong(&token, &"nothing, as the variant holds nothing")),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        self.check("newtype variant")?;
        seed.deserialize(self.reader)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Fault> {
        self.check("tuple variant")?;
        de::Deserializer::deserialize_tuple(self.reader, len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, fields: &'static [&'static str], visitor: V) -> Result<V::Value, Fault> {
        self.check("struct variant")?;
        de::Deserializer::deserialize_struct(self.reader, "", fields, visitor)
    }
}
