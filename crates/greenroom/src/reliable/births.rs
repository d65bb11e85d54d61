//! How actors come into being and halt, and the keys of those that others create: each names its incarnation, so none is
//! given twice (R5).
//!
//! `@PARTITION.LIFE.EPOCH.SERIAL`, each a hexadecimal number without leading zeros. A message for such a key is for that
//! incarnation alone. A promise to journals and references.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use greenroom_protocols::delivery::{Birth, Epoch, Life, Ownership, PartitionId};

use super::takings::takings;
use crate::actor::cx::Cx;
use crate::actor::interface::Interface;
use crate::actor::key::Key;
use crate::actor::reference::Ref;

impl<I: Interface> Ref<I> {
    /// An actor of a reliable kind that comes into being with the current turn's commit, under a key that was never used.
    ///
    /// # Panics
    /// Outside of turns of reliable actors: there, any key will do, as its actor always exists.
    #[doc(hidden)]
    pub fn create(cx: &Cx) -> Self {
        Self::made(create(I::KIND, cx), Some(cx.port.clone()))
    }
}

fn create(kind: &'static str, cx: &Cx) -> Key {
    let takings = takings().expect("`create` belongs into turns of reliable actors; elsewhere use `of` and a key");
    takings.create(kind, cx.port.node.config().reliable.partitions)
}

impl Cx {
    /// Lets a reliable actor end with this turn: its state and what waits for it go with the turn's commit. The next message
    /// to its key finds a fresh actor; if another actor has created it, messages to its key are dead letters from then on.
    ///
    /// Outside of turns of reliable actors it does nothing.
    pub fn halt(&self) {
        if let Some(takings) = takings() {
            takings.halt();
        }
    }
}

/// What an ownership gives to the actors that its turns create.
#[derive(Clone, Debug)]
pub(super) struct Births {
    owner: Ownership,
    life: Life,
    given: Arc<AtomicU64>,
}

impl Births {
    pub(super) fn new(owner: Ownership, life: Life) -> Self {
        Self { owner, life, given: Arc::default() }
    }

    /// A fresh one; it need not be used.
    pub(super) fn next(&self) -> Birth {
        let serial = self.given.fetch_add(1, Ordering::Relaxed) + 1;
        Birth { by: self.owner.partition, life: self.life, epoch: self.owner.epoch, serial }
    }
}

/// The key of the actor whose incarnation it is.
pub(super) fn key(birth: Birth) -> String {
    let Birth { by, life, epoch, serial } = birth;
    format!("{MARK}{:x}.{:x}.{:x}.{serial:x}", by.0, life.0, epoch.0)
}

/// The incarnation that `key` names, if it is one of these.
pub(super) fn parse(key: &str) -> Option<Birth> {
    let mut parts = key.strip_prefix(MARK)?.split('.');
    let mut next = || {
        let part = parts.next()?;
        let canonical = part.len() <= 16
            && part.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
            && (part == "0" || !part.starts_with('0'));
        canonical.then(|| u64::from_str_radix(part, 16).ok()).flatten()
    };
    let by = PartitionId(u32::try_from(next()?).ok()?);
    let birth = Birth { by, life: Life(next()?), epoch: Epoch(next()?), serial: next()? };
    parts.next().is_none().then_some(birth)
}

/// What these keys begin with. It needs no escape in a URL's path.
const MARK: char = '@';

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spelling_is_a_promise_to_journals() {
        let birth = Birth { by: PartitionId(17), life: Life(0x19a_a2f3_c4d1), epoch: Epoch(7), serial: 42 };
        assert_eq!(key(birth), "@11.19aa2f3c4d1.7.2a");
        assert_eq!(parse("@11.19aa2f3c4d1.7.2a"), Some(birth));
    }

    #[test]
    fn what_is_spelled_otherwise_is_a_key_like_any_other() {
        for other in
            ["", "@", "11.1.1.1", "@11.1.1", "@11.1.1.1.1", "@011.1.1.1", "@11.1.1.A", "@1ffffffff.1.1.1", "@ada"]
        {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
