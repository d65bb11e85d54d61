//! The activations of a shard, by slot.

use std::rc::Rc;

use super::activation::AnyActivation;
use super::slot::Slot;

/// Activations in pages that never move: growing copies nothing.
#[derive(Default)]
pub(super) struct Slab {
    pages: Vec<Box<[Entry]>>,
    free: Vec<u32>,
    next: u32,
    len: usize,
}

#[derive(Default)]
struct Entry {
    generation: u32,
    activation: Option<Rc<dyn AnyActivation>>,
}

impl Slab {
    /// A slot for what `make` gives.
    pub(super) fn insert(&mut self, make: impl FnOnce(Slot) -> Rc<dyn AnyActivation>) -> Slot {
        let index = self.free.pop().unwrap_or_else(|| {
            if self.next as usize == self.pages.len() * PAGE_LEN {
                self.pages.push((0..PAGE_LEN).map(|_| Entry::default()).collect());
            }
            self.next += 1;
            self.next - 1
        });
        let entry = &mut self.pages[index as usize / PAGE_LEN][index as usize % PAGE_LEN];
        let slot = Slot { index, generation: entry.generation };
        entry.activation = Some(make(slot));
        self.len += 1;
        slot
    }

    #[inline]
    pub(super) fn find(&self, slot: Slot) -> Option<&Rc<dyn AnyActivation>> {
        let entry = self.pages.get(slot.index as usize / PAGE_LEN)?.get(slot.index as usize % PAGE_LEN)?;
        entry.activation.as_ref().filter(|_| entry.generation == slot.generation)
    }

    pub(super) fn remove(&mut self, slot: Slot) -> Option<Rc<dyn AnyActivation>> {
        let entry = self.pages.get_mut(slot.index as usize / PAGE_LEN)?.get_mut(slot.index as usize % PAGE_LEN)?;
        if entry.generation != slot.generation {
            return None;
        }
        let activation = entry.activation.take()?;
        if entry.generation < Slot::GENERATION_MAX {
            entry.generation += 1;
            self.free.push(slot.index);
        }
        self.len -= 1;
        Some(activation)
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// What is in the `len` places from `first` on, and the place to go on at, if there are more.
    pub(super) fn some(&self, first: u32, len: u32) -> (Vec<Rc<dyn AnyActivation>>, Option<u32>) {
        let end = first.saturating_add(len).min(self.next);
        let entry = |index: u32| self.pages[index as usize / PAGE_LEN][index as usize % PAGE_LEN].activation.clone();
        ((first..end).filter_map(entry).collect(), (end < self.next).then_some(end))
    }

    /// Gives places out as if none had been, now that there are no activations.
    #[cfg(feature = "rehearsal")]
    pub(super) fn begin_anew(&mut self) {
        if self.len == 0 && self.free.len() == self.next as usize {
            self.free.clear();
            self.next = 0;
        } else {
            self.free.sort_unstable_by(|one, other| other.cmp(one));
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Rc<dyn AnyActivation>> {
        let entries = self.pages.iter().flat_map(|page| page.iter()).take(self.next as usize);
        entries.filter_map(|entry| entry.activation.as_ref())
    }
}

const PAGE_LEN: usize = 256;
