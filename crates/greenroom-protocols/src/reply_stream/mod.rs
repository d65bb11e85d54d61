//! Windows of streams of replies: what may be under way, and whether all of it has come.
//!
//! Items are numbered from 0. The consumer says how many it has taken in total; the producer sends as long as fewer than
//! a window's worth are under way, in items and in bytes. Credit is a total, not an increment, so losing, repeating or
//! reordering it costs time but no count. Items travel on one connection in order; a number that does not follow is a
//! break, never skipped.
//!
//! Pure: no clock, no I/O, no randomness.

use std::collections::VecDeque;

#[cfg(test)]
mod tests;

/// The producer's end.
#[derive(Clone, Debug)]
pub struct Producer {
    window: u64,
    bytes_max: usize,
    sent: u64,
    consumed: u64,
    /// Sizes of what is under way, the oldest first.
    sizes: VecDeque<usize>,
    bytes: usize,
}

/// The consumer said it has taken what was never sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NeverSent;

impl Producer {
    /// A stream whose consumer has room for `window` items; whatever it says, at most [`WINDOW_MAX`] and about `bytes_max`
    /// bytes are under way.
    pub fn new(window: u32, bytes_max: usize) -> Self {
        let window = u64::from(window.min(WINDOW_MAX));
        Self { window, bytes_max, sent: 0, consumed: 0, sizes: VecDeque::new(), bytes: 0 }
    }

    /// Whether another item may be sent. One always may when nothing is under way, however large it is.
    pub fn may_send(&self) -> bool {
        let under_way = self.sent - self.consumed;
        under_way < self.window && (under_way == 0 || self.bytes < self.bytes_max)
    }

    /// The number of the item of `size` bytes that is sent now.
    pub fn send(&mut self, size: usize) -> u64 {
        assert!(self.may_send(), "an item is sent that the consumer has no room for");
        self.sizes.push_back(size);
        self.bytes += size;
        self.sent += 1;
        self.sent - 1
    }

    /// Items sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// The consumer has taken `total` items. What it said before may come after what it said later.
    ///
    /// # Errors
    /// [`NeverSent`]: it is broken or not the consumer of this stream, which is to be ended.
    pub fn consumed(&mut self, total: u64) -> Result<(), NeverSent> {
        if total > self.sent {
            return Err(NeverSent);
        }
        while self.consumed < total {
            self.consumed += 1;
            self.bytes -= self.sizes.pop_front().unwrap_or(0);
        }
        assert_eq!(self.sizes.len() as u64, self.sent - self.consumed, "an item is under way that was not counted");
        assert!(!self.sizes.is_empty() || self.bytes == 0, "bytes are under way of no item");
        Ok(())
    }
}

/// The consumer's end, where items come in.
#[derive(Clone, Debug)]
pub struct Consumer {
    window: u64,
    arrived: u64,
    /// What the producer was last told.
    told: u64,
}

/// What an item is that has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// The next one.
    Next,
    /// One that has come before: to be ignored.
    Again,
    /// One before it is missing: the stream is broken.
    Gap,
    /// The producer sends more than there is room for: the stream is to be given up.
    Overrun,
}

impl Consumer {
    /// The end of a consumer with room for `window` items.
    pub fn new(window: u32) -> Self {
        Self { window: u64::from(window.clamp(1, WINDOW_MAX)), arrived: 0, told: 0 }
    }

    /// The item of this number has come.
    pub fn arrived(&mut self, number: u64) -> Arrival {
        match number {
            again if again < self.arrived => Arrival::Again,
            next if next > self.arrived => Arrival::Gap,
            _ if self.arrived - self.told >= self.window => Arrival::Overrun,
            _ => {
                self.arrived += 1;
                Arrival::Next
            }
        }
    }

    /// Whether all items of a stream that had `number` have come.
    pub fn is_complete(&self, number: u64) -> bool {
        self.arrived == number
    }

    /// The producer is now told that `total` items have been taken.
    pub fn told(&mut self, total: u64) {
        self.told = self.told.max(total.min(self.arrived));
        assert!(self.arrived - self.told <= self.window, "more has come than there was room for");
    }
}

/// Who takes the items that have come, and says when the producer is to be told.
#[derive(Clone, Debug)]
pub struct Reader {
    window: u64,
    bytes_max: usize,
    taken: u64,
    untold: u64,
    untold_bytes: usize,
}

impl Reader {
    /// The reader of a consumer with room for `window` items, whose producer keeps at most about `bytes_max` under way.
    pub fn new(window: u32, bytes_max: usize) -> Self {
        let window = u64::from(window.clamp(1, WINDOW_MAX));
        Self { window, bytes_max, taken: 0, untold: 0, untold_bytes: 0 }
    }

    /// An item of `size` bytes is taken. Gives the total that the producer is to be told now, if it is: when half of the
    /// window is free, in items or in bytes, so that it need not pause and need not be told of each item.
    pub fn took(&mut self, size: usize) -> Option<u64> {
        self.taken += 1;
        self.untold += 1;
        self.untold_bytes += size;
        if self.untold < self.window.div_ceil(2) && self.untold_bytes < self.bytes_max.div_ceil(2) {
            return None;
        }
        (self.untold, self.untold_bytes) = (0, 0);
        Some(self.taken)
    }
}

/// Items of one stream that may be under way at once, whatever its consumer says.
pub const WINDOW_MAX: u32 = 4096;
/// Bytes of one stream that may be under way at once, but for a single item that is larger.
pub const BYTES_MAX: usize = 256 << 10;
