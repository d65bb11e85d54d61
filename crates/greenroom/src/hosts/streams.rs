//! Streams between hosts and all others: each end is at a lane, and between them runs what brings the items of any stream.
//!
//! - What a host's method yields is *produced*: its turn's reply is the stream's name, and whoever consumes that has its room told to
//!   the host. It ends with the seat that it comes from (L19).
//! - What a host asks for by its name is *consumed*: items leave as the host has room for them.

mod consumed;
mod produced;

use std::collections::BTreeMap;

use self::consumed::Consumed;
use self::produced::Produced;
pub(super) use self::produced::{Begun, Items};

/// The streams of a lane, by the host's numbers.
#[derive(Default)]
pub(super) struct Streams {
    produced: BTreeMap<u64, Produced>,
    consumed: BTreeMap<u64, Consumed>,
}

impl Streams {
    /// Ends those that come from a seat.
    pub(super) fn end_of(&mut self, seat: u64) {
        self.produced.retain(|_, stream| stream.seat != seat || stream.end());
    }

    /// Ends all: the lane is gone.
    pub(super) fn end_all(&mut self) {
        self.produced.retain(|_, stream| stream.end());
        for (_, mut stream) in std::mem::take(&mut self.consumed) {
            stream.wake();
        }
    }
}
