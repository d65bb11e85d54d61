//! What leaves before the round ends: after a shard had nothing to do, its peers may be waiting for what it does first, and have
//! nothing to do themselves until then.

/// How much has been put onto one connection since the shard found work again.
#[derive(Default)]
pub(super) struct Early {
    /// Which time of finding work it was.
    found: u64,
    frames: u32,
    /// With so many, what has gathered leaves.
    due: u32,
}

impl Early {
    /// A frame has been put onto the connection, in the round that found work for the `found`th time. Whether what has gathered
    /// is to leave: rarely enough that a long round loses nothing by it.
    pub(super) fn frame(&mut self, found: u64) -> bool {
        if self.found != found {
            *self = Self { found, frames: 0, due: FIRST };
        }
        self.frames += 1;
        let leaves = self.frames == self.due;
        if leaves {
            self.due = self.due.saturating_mul(GROWTH);
        }
        leaves
    }
}

/// So many frames leave first. A write costs what it takes to handle a few.
const FIRST: u32 = 32;
/// The next time, so many times as many have been put onto it.
const GROWTH: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_frames_leave_at_once_and_the_others_in_ever_more() {
        let mut early = Early::default();
        let left = |early: &mut Early, found| (1..=1000).filter(|_| early.frame(found)).count();
        let at: Vec<u32> = (1..=1000).filter(|_| early.frame(1)).collect();
        assert_eq!(at, [32, 128, 512]);
        assert_eq!(left(&mut early, 1), 0, "the next is at 2048");
        assert_eq!(left(&mut early, 2), 3, "and anew when the shard has been idle");
    }
}
