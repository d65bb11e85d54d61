//! A table of entries in sets of eight: which set an entry is in is by its hash, and a full set has room for nobody else.
//!
//! A table with few entries is gone through fast: it knows which of its sets have had one since they were last found empty.

/// What a table has; the default is free.
pub(crate) trait Entry: Copy + Default {
    /// Whether this is no entry.
    fn is_free(&self) -> bool;
}

/// A table, all of it allocated when it is made.
#[derive(Clone, Debug)]
pub(crate) struct Ways<E> {
    sets: Box<[[E; WAYS]]>,
    /// A bit for each set that may have an entry.
    used: Box<[u64]>,
}

impl<E: Entry> Ways<E> {
    /// A table with room for so many entries, a power of two.
    pub(crate) fn new(capacity: usize) -> Self {
        debug_assert!(capacity.is_power_of_two() && capacity >= WAYS, "no table of sets: {capacity}");
        let sets = capacity / WAYS;
        let used = vec![0; sets.div_ceil(BITS)].into();
        Self { sets: vec![[E::default(); WAYS]; sets].into(), used }
    }

    /// How many entries there is room for.
    pub(crate) fn capacity(&self) -> usize {
        self.sets.len() * WAYS
    }

    /// How many sets there are.
    pub(crate) fn sets(&self) -> usize {
        self.sets.len()
    }

    /// What is in a set, free places included.
    pub(crate) fn set(&self, set: usize) -> &[E; WAYS] {
        &self.sets[set]
    }

    /// The same, to change it or to take an entry out. None is put in here.
    pub(crate) fn set_mut(&mut self, set: usize) -> &mut [E; WAYS] {
        &mut self.sets[set]
    }

    /// The same, to put an entry in.
    pub(crate) fn set_to_fill(&mut self, set: usize) -> &mut [E; WAYS] {
        self.used[set / BITS] |= 1 << (set % BITS);
        &mut self.sets[set]
    }

    /// The same entries, in a table with room for twice as many. `set_of` says which of how many sets an entry is in: one of two
    /// to which those of each set go.
    pub(crate) fn grown(&self, set_of: impl Fn(&E, usize) -> usize) -> Self {
        let mut grown = Self::new(self.capacity() * 2);
        for entry in self.entries() {
            let set = grown.set_to_fill(set_of(entry, self.sets() * 2));
            *set.iter_mut().find(|place| place.is_free()).expect("a set has ways for all of another one") = *entry;
        }
        grown
    }

    /// All entries.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &E> {
        let words = self.used.iter().enumerate();
        let sets = words.flat_map(|(index, word)| bits(*word).map(move |bit| index * BITS + bit));
        sets.flat_map(|set| &self.sets[set]).filter(|entry| !entry.is_free())
    }

    /// Goes through the entries of the sets in `range`, to change them or to take them out.
    pub(crate) fn visit(&mut self, range: std::ops::Range<usize>, mut visit: impl FnMut(&mut E)) {
        let words = range.start / BITS..range.end.div_ceil(BITS);
        for (index, word) in self.used[words.clone()].iter_mut().enumerate() {
            let first = (words.start + index) * BITS;
            for bit in bits(*word).filter(|bit| range.contains(&(first + bit))) {
                let set = &mut self.sets[first + bit];
                set.iter_mut().filter(|entry| !entry.is_free()).for_each(&mut visit);
                if set.iter().all(E::is_free) {
                    *word &= !(1 << bit);
                }
            }
        }
    }
}

/// The places of the bits of a word that are set.
fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
        word &= word - 1;
        Some(bit)
    })
}

/// Entries of a set.
pub(crate) const WAYS: usize = 8;
const BITS: usize = u64::BITS as usize;

#[cfg(test)]
mod tests {
    use super::*;

    impl Entry for u32 {
        fn is_free(&self) -> bool {
            *self == 0
        }
    }

    fn table() -> Ways<u32> {
        let mut table = Ways::new(1024);
        for entry in [1_u32, 64, 65, 127, 193] {
            table.set_to_fill(entry as usize % 128)[entry as usize / 64] = entry;
        }
        table
    }

    #[test]
    fn all_entries_are_gone_through_and_no_free_place() {
        let mut found: Vec<u32> = table().entries().copied().collect();
        found.sort_unstable();
        assert_eq!(found, [1, 64, 65, 127, 193]);
    }

    #[test]
    fn a_range_of_sets_is_visited_alone() {
        let (mut table, mut seen) = (table(), Vec::new());
        table.visit(1..65, |entry| seen.push(*entry));
        table.visit(65..128, |entry| seen.push(*entry));
        assert_eq!(seen, [1, 64, 65, 193, 127], "set 65 has two of them");
    }

    #[test]
    fn a_set_that_was_found_empty_is_gone_through_no_more_until_it_is_filled() {
        let mut table = table();
        table.visit(0..128, |entry| {
            if *entry != 127 {
                *entry = 0;
            }
        });
        assert_eq!(table.used.iter().map(|word| word.count_ones()).sum::<u32>(), 1);
        table.set_to_fill(2)[0] = 2;
        assert_eq!(table.entries().copied().collect::<Vec<u32>>(), [2, 127]);
    }

    #[test]
    fn a_table_that_grows_keeps_all_entries() {
        let grown = table().grown(|entry, sets| *entry as usize % sets);
        assert_eq!(grown.capacity(), 2048);
        assert_eq!(grown.set(193).iter().filter(|entry| !entry.is_free()).count(), 1);
        assert_eq!(grown.entries().count(), 5);
    }
}
