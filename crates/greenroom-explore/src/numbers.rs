//! Maps and sets by the numbers of steps and traces, which are as good as random: one multiplication is hash enough.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// Something for each number.
pub(crate) type ByNumber<T> = HashMap<u64, T, BuildHasherDefault<Spread>>;
/// Numbers, each once.
pub(crate) type Numbers = HashSet<u64, BuildHasherDefault<Spread>>;

/// Spreads a number over all bits.
#[derive(Clone, Copy, Default)]
pub(crate) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32);
    }
}
