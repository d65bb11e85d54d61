//! The state of a byte array.

use serde::{Deserialize, Serialize};

use crate::kinds::Payload;

/// 512 bytes, of which 32 are read or written at a time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Array {
    #[serde(with = "serde_bytes")]
    bytes: Vec<u8>,
}

impl Default for Array {
    fn default() -> Self {
        Self { bytes: vec![0; ARRAY_LEN] }
    }
}

/// What is written where.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Patch {
    offset: u16,
    bytes: Payload,
}

impl Patch {
    /// Writes [`PART_LEN`] bytes at `offset`.
    pub fn at(offset: u16) -> Self {
        Self { offset, bytes: crate::kinds::payload(PART_LEN) }
    }
}

impl Array {
    /// The part at `offset`, which is taken into the array's bounds.
    pub fn part(&self, offset: u16) -> Payload {
        let from = bounded(offset);
        Payload::from(self.bytes.get(from..from + PART_LEN).unwrap_or_default())
    }

    /// Writes as `patch` says.
    pub fn write(&mut self, patch: &Patch) {
        let from = bounded(patch.offset);
        let part = self.bytes.get_mut(from..from + PART_LEN).into_iter().flatten();
        part.zip(patch.bytes.iter()).for_each(|(here, new)| *here = *new);
    }
}

fn bounded(offset: u16) -> usize {
    usize::from(offset) % (ARRAY_LEN - PART_LEN + 1)
}

/// Bytes of an array.
pub const ARRAY_LEN: usize = 512;
/// Bytes that one access reads or writes.
pub const PART_LEN: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_what_was_written_there_wherever_it_is() {
        let mut array = Array::default();
        for offset in [0, 31, 480, 481, u16::MAX] {
            array.write(&Patch::at(offset));
            assert_eq!(array.part(offset), crate::kinds::payload(PART_LEN));
        }
        assert_eq!(array.bytes.len(), ARRAY_LEN);
    }
}
