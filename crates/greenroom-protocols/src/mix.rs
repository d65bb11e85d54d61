//! A fixed 64-bit mixer, the same on every node and in every version.

/// Spreads `value` over all 64 bits (the finalizer of splitmix64: Steele, Lea & Flood, OOPSLA '14).
pub(crate) const fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The weight of `node` in the contest named `contest`: what rendezvous hashing and the rings order by.
pub(crate) const fn weight(contest: u64, node: u64) -> u64 {
    mix(mix(contest) ^ node)
}
