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

    /// What is still to be read.
    #[inline]
    pub(crate) fn peek(&self) -> &'a [u8] {
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
            _ => match self.word_varint() {
                Some(value) => value,
                None => self.varint_by_bytes(field)?,
            },
        };
        if value > max { Err(out_of_bounds(field, value, max)) } else { Ok(value) }
    }

    /// A sound varint of up to eight bytes, read as one word, for a loop over bytes costs several times as much; `None`
    /// leaves all others, and what is too near the end for a word, to [`Reader::varint_by_bytes`].
    #[inline]
    fn word_varint(&mut self) -> Option<u64> {
        let word = u64::from_le_bytes(*self.rest.first_chunk::<8>()?);
        let ends = !word & 0x8080_8080_8080_8080;
        if ends == 0 {
            return None;
        }
        let len = ends.trailing_zeros() / 8 + 1;
        let septets = word & (u64::MAX >> (64 - 8 * len)) & 0x7f7f_7f7f_7f7f_7f7f;
        let pairs = ((septets & 0x7f00_7f00_7f00_7f00) >> 1) | (septets & 0x007f_007f_007f_007f);
        let fours = ((pairs & 0x3fff_0000_3fff_0000) >> 2) | (pairs & 0x0000_3fff_0000_3fff);
        let value = ((fours & 0x0fff_ffff_0000_0000) >> 4) | (fours & 0x0000_0000_0fff_ffff);
        if value >> (7 * (len - 1)) == 0 {
            return None;
        }
        self.rest = &self.rest[len as usize..];
        Some(value)
    }

    /// Every varint, and what is wrong with one that is none.
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

#[cold]
fn out_of_bounds(field: &'static str, value: u64, max: u64) -> FrameError {
    FrameError::OutOfBounds { field, value, max }
}

/// Bytes of the longest varint: 64 bits, seven a byte.
const VARINT_LEN_MAX: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::varint::Head;

    #[test]
    fn a_varint_is_read_alike_near_the_end_and_far_from_it() {
        for shift in 0..64 {
            for value in [u64::MAX >> shift, 1 << shift, (1 << shift) - 1] {
                let mut head = Head::bare();
                head.varint(value);
                let mut far = head.as_slice().to_vec();
                far.extend([0xff; 16]);
                assert_eq!(Reader::new(head.as_slice()).u64("near"), Ok(value));
                let mut reader = Reader::new(&far);
                assert_eq!(reader.u64("far"), Ok(value));
                assert_eq!(reader.rest(), [0xff; 16]);
            }
        }
    }
}
