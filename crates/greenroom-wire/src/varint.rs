//! LEB128 numbers in their shortest form, written to a header that lies on the stack.

/// A frame header under construction: written field by field, appended to the batch at once.
pub(crate) struct Head {
    bytes: [u8; HEAD_LEN_MAX],
    len: usize,
}

impl Head {
    /// A header with room for the length, and the frame's type.
    #[inline]
    pub(crate) fn new(frame_type: u8) -> Self {
        let mut bytes = [0; HEAD_LEN_MAX];
        bytes[LENGTH_LEN] = frame_type;
        Self { bytes, len: LENGTH_LEN + 1 }
    }

    #[inline]
    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes[self.len] = value;
        self.len += 1;
    }

    #[inline]
    pub(crate) fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.u8(value as u8);
    }

    /// No length and no type: a lone varint.
    #[inline]
    pub(crate) fn bare() -> Self {
        Self { bytes: [0; HEAD_LEN_MAX], len: 0 }
    }

    /// Leaves a byte out, to be [set](Head::set) later.
    #[inline]
    pub(crate) fn skip(&mut self) -> usize {
        self.len += 1;
        self.len - 1
    }

    #[inline]
    pub(crate) fn set(&mut self, at: usize, value: u8) {
        self.bytes[at] = value;
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The envelope's length field, in bytes.
pub(crate) const LENGTH_LEN: usize = 4;
/// The longest fixed part: a call with everything but its texts (83 bytes), rounded up.
const HEAD_LEN_MAX: usize = 96;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_header_fits() {
        let mut head = Head::new(3);
        head.u8(0xff);
        head.varint(u16::MAX.into());
        head.varint(u32::MAX.into());
        head.varint(u32::MAX.into());
        head.varint(u64::MAX);
        head.u8(u8::MAX);
        head.varint(u16::MAX.into());
        head.varint(u16::MAX.into());
        head.varint(u64::MAX);
        for _ in 0..3 {
            head.varint(u64::MAX);
        }
        head.varint(u32::MAX.into());
        assert!(head.as_slice().len() <= HEAD_LEN_MAX);
    }
}
