//! Chance that can be repeated: xorshift64*, seeded.

use std::time::Duration;

/// A small generator; the same seed gives the same numbers.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        // Never zero, which the generator would not leave.
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) % bound
    }

    /// Lets others go first, now and then: on a fast engine callers would have done before the next one starts.
    pub(crate) async fn dawdle(&mut self) {
        match self.below(4) {
            0 => tokio::time::sleep(Duration::from_micros(self.below(1500))).await,
            _ => std::thread::yield_now(),
        }
    }

    /// `len` bytes without an order, but for a repetition after a while.
    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        let block: Vec<u8> = (0..len.min(BLOCK_BYTES)).map(|_| self.below(256) as u8).collect();
        let mut bytes = Vec::with_capacity(len);
        while bytes.len() < len {
            let missing = len - bytes.len();
            bytes.extend_from_slice(&block[..missing.min(block.len())]);
        }
        bytes
    }
}

/// A prime, so that what cuts at round numbers never meets the same bytes twice.
const BLOCK_BYTES: usize = 65_521;
