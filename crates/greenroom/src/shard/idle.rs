//! When to look at an activation: whether it has been idle, what it has to save, what waits there too long.

use std::collections::BTreeMap;

use greenroom_world::Timestamp;

use super::Slot;

/// Buckets of slots by the time at which they are due; a bucket is `NANOS` of it.
#[derive(Default)]
pub(super) struct Wheel<const NANOS: u64> {
    buckets: BTreeMap<u64, Vec<Slot>>,
}

/// For what may be late by a quarter of a second.
pub(super) type IdleWheel = Wheel<250_000_000>;
/// For what may be late by a millisecond.
pub(super) type FineWheel = Wheel<1_000_000>;

impl<const NANOS: u64> Wheel<NANOS> {
    /// Looks at `slot` once `due` has passed.
    pub(super) fn insert(&mut self, due: Timestamp, slot: Slot) {
        if due != Timestamp::NEVER {
            self.buckets.entry(due.as_nanos() / NANOS + 1).or_default().push(slot);
        }
    }

    /// When something is next due.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.buckets.first_key_value().map(|(bucket, _)| Timestamp::from_nanos(bucket.saturating_mul(NANOS)))
    }

    /// Takes at most `max` slots that are due at `now`.
    pub(super) fn take_due(&mut self, now: Timestamp, max: usize) -> Vec<Slot> {
        let mut due = Vec::new();
        while let Some(mut bucket) = self.buckets.first_entry() {
            if bucket.key().saturating_mul(NANOS) > now.as_nanos() || due.len() >= max {
                break;
            }
            let slots = bucket.get_mut();
            let taken = slots.len().min(max - due.len());
            due.extend(slots.drain(slots.len() - taken..));
            if slots.is_empty() {
                bucket.remove();
            }
        }
        due
    }
}
