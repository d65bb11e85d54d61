//! The one source of randomness of a simulation.

use std::ops::Range;
use std::time::Duration;

/// SplitMix64 (Steele, Lea, Flood: *Fast Splittable Pseudorandom Number Generators*, 2014): the same seed gives the same
/// numbers on every machine.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator that is fully decided by `seed`.
    pub fn new(seed: u64) -> Self {
        Self(mix(seed ^ 0x6772_6565_6e72_6f6f))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// A number below `bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// An index into a collection of `len` items; 0 if it is empty.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// One of `items`; `None` if there are none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.index(items.len()))
    }

    /// True with `probability` (0 to 1). Draws nothing when the outcome is certain.
    pub fn chance(&mut self, probability: f64) -> bool {
        if probability <= 0.0 {
            return false;
        }
        probability >= 1.0 || ((self.bits() >> 11) as f64) < probability * (1u64 << 53) as f64
    }

    /// A duration within `range`; its start if it is empty.
    pub fn within(&mut self, range: &Range<Duration>) -> Duration {
        let width = range.end.saturating_sub(range.start).as_nanos() as u64;
        range.start + Duration::from_nanos(self.below(width))
    }

    /// Puts `items` into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }

    /// A generator of its own, decided by this one's state.
    pub fn fork(&mut self) -> Self {
        Self(self.bits())
    }
}

/// SplitMix64's finalizer: every bit of the input changes half of the output's.
pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
