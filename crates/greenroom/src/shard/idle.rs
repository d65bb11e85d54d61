//! When to look whether an activation has been idle: each is in one bucket, and is looked at once an idle time.

use std::collections::BTreeMap;

use greenroom_world::Timestamp;

use super::Slot;

/// Buckets of slots by the time at which they are due.
#[derive(Default)]
pub(super) struct IdleWheel {
    buckets: BTreeMap<u64, Vec<Slot>>,
}

impl IdleWheel {
    /// Looks at `slot` once `due` has passed.
    pub(super) fn insert(&mut self, due: Timestamp, slot: Slot) {
        if due != Timestamp::NEVER {
            self.buckets.entry(due.as_nanos() / BUCKET_NANOS + 1).or_default().push(slot);
        }
    }

    /// When something is next due.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.buckets.first_key_value().map(|(bucket, _)| Timestamp::from_nanos(bucket.saturating_mul(BUCKET_NANOS)))
    }

    /// Takes at most `max` slots that are due at `now`.
    pub(super) fn take_due(&mut self, now: Timestamp, max: usize) -> Vec<Slot> {
        let mut due = Vec::new();
        while let Some(mut bucket) = self.buckets.first_entry() {
            if bucket.key().saturating_mul(BUCKET_NANOS) > now.as_nanos() || due.len() >= max {
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

/// A quarter of a second: activations leave up to so much later than their idle time says.
const BUCKET_NANOS: u64 = 250_000_000;
