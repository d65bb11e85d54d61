//! Where an activation is.

/// Where an activation is on its shard; the generation tells the slot's uses apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slot {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl Slot {
    /// Generations have 18 bits, to fit into a route's word. A slot that has used all of them is not used again: so no two
    /// activations of a shard ever have the same slot and generation.
    pub(crate) const GENERATION_MAX: u32 = (1 << 18) - 1;
}
