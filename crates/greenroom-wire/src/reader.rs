//! Takes fields off the front of a frame's body; refuses what is not there.

use crate::error::FrameError;

/// The part of a body that is still to be read.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    #[inline]
    pub(crate) fn new(body: &'a [u8]) -> Self {
        Self { rest: body }
    }

    #[inline]
    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline]
    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, FrameError> {
        let (&first, rest) = self.rest.split_first().ok_or(FrameError::Truncated { field })?;
        self.rest = rest;
        Ok(first)
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], FrameError> {
        let (first, rest) = self.rest.split_first_chunk().ok_or(FrameError::Truncated { field })?;
        self.rest = rest;
        Ok(*first)
    }

    /// A varint of at most `max`.
    #[inline]
    pub(crate) fn varint(&mut self, field: &'static str, max: u64) -> Result<u64, FrameError> {
        let value = match self.rest.split_first() {
            Some((&first, rest)) if first < 0x80 => {
                self.rest = rest;
                first.into()
            }
            _ => self.long_varint(field)?,
        };
        if value > max { Err(FrameError::OutOfBounds { field, value, max }) } else { Ok(value) }
    }

    /// Two bytes or more: read as one word where there is one, for a loop over bytes costs several times as much.
    #[inline]
    fn long_varint(&mut self, field: &'static str) -> Result<u64, FrameError> {
        let Some(&word) = self.rest.first_chunk::<8>() else { return self.varint_by_bytes(field) };
        let word = u64::from_le_bytes(word);
        let ends = !word & 0x8080_8080_8080_8080;
        if ends == 0 {
            return self.varint_by_bytes(field);
        }
        let len = ends.trailing_zeros() / 8 + 1;
        let septets = word & (u64::MAX >> (64 - 8 * len)) & 0x7f7f_7f7f_7f7f_7f7f;
        let pairs = ((septets & 0x7f00_7f00_7f00_7f00) >> 1) | (septets & 0x007f_007f_007f_007f);
        let fours = ((pairs & 0x3fff_0000_3fff_0000) >> 2) | (pairs & 0x0000_3fff_0000_3fff);
        let value = ((fours & 0x0fff_ffff_0000_0000) >> 4) | (fours & 0x0000_0000_0fff_ffff);
        if value >> (7 * (len - 1)) == 0 {
            return Err(FrameError::BadVarint { field });
        }
        self.rest = &self.rest[len as usize..];
        Ok(value)
    }

    #[cold]
    fn varint_by_bytes(&mut self, field: &'static str) -> Result<u64, FrameError> {
        let mut value = 0;
        for (at, &byte) in self.rest.iter().take(VARINT_LEN_MAX).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte < 0x80 {
                let overflows = at + 1 == VARINT_LEN_MAX && byte > 1;
                let overlong = at > 0 && byte == 0;
                if overflows || overlong {
                    return Err(FrameError::BadVarint { field });
                }
                self.rest = &self.rest[at + 1..];
                return Ok(value);
            }
        }
        if self.rest.len() < VARINT_LEN_MAX {
            return Err(FrameError::Truncated { field });
        }
        Err(FrameError::BadVarint { field })
    }

    #[inline]
    pub(crate) fn u16(&mut self, field: &'static str) -> Result<u16, FrameError> {
        self.varint(field, u16::MAX.into()).map(|value| value as u16)
    }

    #[inline]
    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, FrameError> {
        self.varint(field, u32::MAX.into()).map(|value| value as u32)
    }

    #[inline]
    pub(crate) fn u64(&mut self, field: &'static str) -> Result<u64, FrameError> {
        self.varint(field, u64::MAX)
    }

    /// A varint length of at most `len_max`, and that many bytes.
    #[inline]
    pub(crate) fn bytes(&mut self, field: &'static str, len_max: usize) -> Result<&'a [u8], FrameError> {
        let len = self.varint(field, len_max as u64)? as usize;
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(FrameError::Truncated { field })?;
        self.rest = rest;
        Ok(bytes)
    }

    /// [`Reader::bytes`] that are UTF-8.
    #[inline]
    pub(crate) fn text(&mut self, field: &'static str, len_max: usize) -> Result<&'a str, FrameError> {
        std::str::from_utf8(self.bytes(field, len_max)?).map_err(|_| FrameError::NotUtf8 { field })
    }
}

/// Bytes of the longest varint: 64 bits, seven a byte.
const VARINT_LEN_MAX: usize = 10;
