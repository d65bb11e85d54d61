//! Calls that wait for what the journal has of their keys.

use std::collections::BTreeMap;

use super::Sealed;

/// Those of a partition, by their keys.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Recalls<A, M> {
    /// Each with the numbers of the answers that were asked for.
    waiting: BTreeMap<String, (Sealed<A, M>, Vec<u64>)>,
    /// How many there are for each actor: they wait for it like what is in its queue.
    of: BTreeMap<A, usize>,
}

impl<A, M> Default for Recalls<A, M> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), of: BTreeMap::new() }
    }
}

impl<A: Clone + Ord, M> Recalls<A, M> {
    pub(super) fn insert(&mut self, key: String, envelope: Sealed<A, M>, numbers: Vec<u64>) {
        *self.of.entry(envelope.to.clone()).or_default() += 1;
        self.waiting.insert(key, (envelope, numbers));
    }

    /// How many there are.
    #[cfg(debug_assertions)]
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The call of this key, if it is one that waits for these answers.
    pub(super) fn take(&mut self, key: &str, numbers: &[u64]) -> Option<Sealed<A, M>> {
        self.waiting.get(key).filter(|(_, awaited)| awaited == numbers)?;
        self.remove(key)
    }

    pub(super) fn remove(&mut self, key: &str) -> Option<Sealed<A, M>> {
        let (envelope, _) = self.waiting.remove(key)?;
        if let Some(count) = self.of.get_mut(&envelope.to) {
            *count -= 1;
            if *count == 0 {
                self.of.remove(&envelope.to);
            }
        }
        Some(envelope)
    }

    /// How many wait for `actor`.
    pub(super) fn of(&self, actor: &A) -> usize {
        self.of.get(actor).copied().unwrap_or_default()
    }
}
