//! A shard's streams of replies: those that wait for consumers or are under way to other nodes, and those that come from
//! other nodes.

mod incoming;
mod outgoing;
mod slots;

use std::cell::RefCell;

use self::incoming::Incoming;
use self::outgoing::Outgoing;
use self::slots::Slots;

/// The streams of one shard.
#[derive(Default)]
pub(super) struct Streams {
    outgoing: RefCell<Slots<Outgoing>>,
    /// When those that nobody has asked for yet are dropped, the first to be first.
    unclaimed: RefCell<outgoing::Unclaimed>,
    incoming: RefCell<Slots<Incoming>>,
}

impl Streams {
    /// Streams that are not over.
    #[cfg(feature = "rehearsal")]
    pub(super) fn len(&self) -> usize {
        self.outgoing.borrow().names(|_| true).len() + self.incoming.borrow().names(|_| true).len()
    }
}
