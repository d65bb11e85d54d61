//! A table whose places are names that are not used again for something else.

use crate::shard::calls::CallSlot;

/// Values by place and generation, at most [`SLOTS_MAX`].
pub(super) struct Slots<T> {
    slots: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    /// A place for `value`; `None` when the table is full.
    pub(super) fn insert(&mut self, value: T) -> Option<CallSlot> {
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.slots.len() == SLOTS_MAX => return None,
            None => {
                self.slots.push((0, None));
                (self.slots.len() - 1) as u32
            }
        };
        let slot = &mut self.slots[index as usize];
        slot.1 = Some(value);
        Some(CallSlot { index, generation: slot.0 })
    }

    pub(super) fn find(&mut self, name: CallSlot) -> Option<&mut T> {
        let (generation, value) = self.slots.get_mut(name.index as usize)?;
        value.as_mut().filter(|_| *generation == name.generation)
    }

    pub(super) fn remove(&mut self, name: CallSlot) -> Option<T> {
        let (generation, value) = self.slots.get_mut(name.index as usize)?;
        if *generation != name.generation {
            return None;
        }
        let value = value.take()?;
        *generation = generation.wrapping_add(1);
        self.free.push(name.index);
        Some(value)
    }

    /// The names of those that `choose` chooses.
    pub(super) fn names(&self, choose: impl Fn(&T) -> bool) -> Vec<CallSlot> {
        let named = self.slots.iter().enumerate().filter(|(_, (_, value))| value.as_ref().is_some_and(&choose));
        named.map(|(index, (generation, _))| CallSlot { index: index as u32, generation: *generation }).collect()
    }
}

/// Streams of one shard, in each direction.
const SLOTS_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_never_another_values() {
        let mut slots = Slots::default();
        let first = slots.insert(1).unwrap();
        assert_eq!(slots.remove(first), Some(1));
        let second = slots.insert(2).unwrap();
        assert_eq!(first.index, second.index);
        assert_eq!(slots.find(first), None);
        assert_eq!(slots.remove(first), None);
        assert_eq!(slots.find(second), Some(&mut 2));
    }

    #[test]
    fn a_full_table_takes_no_more() {
        let mut slots = Slots::default();
        assert_eq!((0..SLOTS_MAX).filter_map(|_| slots.insert(())).count(), SLOTS_MAX);
        assert_eq!(slots.insert(()), None);
    }
}
