//! MessagePack's values, one level deep.

use serde::de::Unexpected;

use super::fault::Fault;

/// What a value begins with: the whole of it, or how many values it holds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Token<'de> {
    Nil,
    Bool(bool),
    Unsigned(u64),
    /// Below 0.
    Signed(i64),
    Single(f32),
    Double(f64),
    Text(&'de str),
    Bytes(&'de [u8]),
    List(u32),
    /// So many keys, each with its value.
    Map(u32),
    /// A value of a kind that MessagePack leaves to its users.
    Extension,
}

impl<'de> Token<'de> {
    /// The byte that stands for nothing.
    pub(super) const NIL: u8 = 0xC0;

    /// The token at `from`, and where the next one is.
    pub(super) fn read(bytes: &'de [u8], from: usize) -> Result<(Self, usize), Fault> {
        let mut rest = bytes.get(from..).ok_or_else(Fault::cut)?;
        let [marker] = take(&mut rest)?;
        let token = match marker {
            0x00..=0x7F => Token::Unsigned(marker.into()),
            0x80..=0x8F => Token::Map((marker & 0x0F).into()),
            0x90..=0x9F => Token::List((marker & 0x0F).into()),
            0xA0..=0xBF => text(&mut rest, (marker & 0x1F).into())?,
            Self::NIL => Token::Nil,
            0xC1 => return Err(Fault::malformed("no value begins with the byte 0xC1")),
            0xC2 | 0xC3 => Token::Bool(marker == 0xC3),
            0xC4..=0xC6 => {
                let len = len(&mut rest, marker - 0xC4)?;
                Token::Bytes(slice(&mut rest, len)?)
            }
            0xC7..=0xC9 => {
                let len = len(&mut rest, marker - 0xC7)?;
                extension(&mut rest, len)?
            }
            0xCA => Token::Single(f32::from_be_bytes(take(&mut rest)?)),
            0xCB => Token::Double(f64::from_be_bytes(take(&mut rest)?)),
            0xCC => Token::Unsigned(u8::from_be_bytes(take(&mut rest)?).into()),
            0xCD => Token::Unsigned(u16::from_be_bytes(take(&mut rest)?).into()),
            0xCE => Token::Unsigned(u32::from_be_bytes(take(&mut rest)?).into()),
            0xCF => Token::Unsigned(u64::from_be_bytes(take(&mut rest)?)),
            0xD0 => signed(i8::from_be_bytes(take(&mut rest)?).into()),
            0xD1 => signed(i16::from_be_bytes(take(&mut rest)?).into()),
            0xD2 => signed(i32::from_be_bytes(take(&mut rest)?).into()),
            0xD3 => signed(i64::from_be_bytes(take(&mut rest)?)),
            0xD4..=0xD8 => extension(&mut rest, 1 << (marker - 0xD4))?,
            0xD9..=0xDB => {
                let len = len(&mut rest, marker - 0xD9)?;
                text(&mut rest, len)?
            }
            0xDC => Token::List(len(&mut rest, 1)?),
            0xDD => Token::List(len(&mut rest, 2)?),
            0xDE => Token::Map(len(&mut rest, 1)?),
            0xDF => Token::Map(len(&mut rest, 2)?),
            0xE0..=0xFF => Token::Signed(i64::from(marker.cast_signed())),
        };
        Ok((token, bytes.len() - rest.len()))
    }

    /// The number or truth value that `text` spells out.
    pub(super) fn spelled(text: &str) -> Option<Token<'static>> {
        let unsigned = text.parse().map(Token::Unsigned);
        let number = unsigned.or_else(|_| text.parse().map(Token::Signed));
        let number = number.ok().or_else(|| text.parse().ok().map(Token::Double));
        number.or_else(|| text.parse().ok().map(Token::Bool))
    }

    /// What serde calls it.
    pub(super) fn unexpected(&self) -> Unexpected<'_> {
        match *self {
            Token::Nil => Unexpected::Unit,
            Token::Bool(value) => Unexpected::Bool(value),
            Token::Unsigned(value) => Unexpected::Unsigned(value),
            Token::Signed(value) => Unexpected::Signed(value),
            Token::Single(value) => Unexpected::Float(value.into()),
            Token::Double(value) => Unexpected::Float(value),
            Token::Text(text) => Unexpected::Str(text),
            Token::Bytes(bytes) => Unexpected::Bytes(bytes),
            Token::List(_) => Unexpected::Seq,
            Token::Map(_) => Unexpected::Map,
            Token::Extension => Unexpected::Other("an extension of MessagePack"),
        }
    }
}

fn signed<'de>(value: i64) -> Token<'de> {
    u64::try_from(value).map_or(Token::Signed(value), Token::Unsigned)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Fault> {
    let (taken, left) = rest.split_first_chunk().ok_or_else(Fault::cut)?;
    *rest = left;
    Ok(*taken)
}

fn slice<'de>(rest: &mut &'de [u8], len: u32) -> Result<&'de [u8], Fault> {
    let (taken, left) = rest.split_at_checked(len as usize).ok_or_else(Fault::cut)?;
    *rest = left;
    Ok(taken)
}

/// A length of 1, 2 or 4 bytes, for a `width` of 0, 1 or 2.
fn len(rest: &mut &[u8], width: u8) -> Result<u32, Fault> {
    Ok(match width {
        0 => u8::from_be_bytes(take(rest)?).into(),
        1 => u16::from_be_bytes(take(rest)?).into(),
        _ => u32::from_be_bytes(take(rest)?),
    })
}

fn text<'de>(rest: &mut &'de [u8], len: u32) -> Result<Token<'de>, Fault> {
    let text = std::str::from_utf8(slice(rest, len)?);
    text.map(Token::Text).map_err(|error| Fault::malformed(format!("a text is not UTF-8: {error}")))
}

fn extension<'de>(rest: &mut &'de [u8], len: u32) -> Result<Token<'de>, Fault> {
    let [_type] = take(rest)?;
    slice(rest, len)?;
    Ok(Token::Extension)
}
