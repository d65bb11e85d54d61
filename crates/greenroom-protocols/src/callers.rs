//! From which clusters the actors of one shard are called: who is called mostly from one other cluster had better live there.
//!
//! An actor gets a row with the first sample of a call from another cluster, so where nobody calls from elsewhere nothing is kept. Its row says
//! which part of its last [`MEMORY`] *messages* came from which cluster; all others, as if before its first row, are of this one. A wish
//! needs two thirds: what would be nearer is twice what would be farther.

use std::collections::BTreeMap;

use crate::gsi::ClusterId;

/// Which parts of the last messages of a shard's actors are calls from other clusters.
#[derive(Clone, Debug, Default)]
pub struct Callers {
    /// By the hashes of the actors.
    rows: BTreeMap<u64, Row>,
}

/// The clusters that call one actor most, and their parts of its last messages.
type Row = [(ClusterId, f32); CLUSTERS];

impl Callers {
    /// Counts a message of an actor that stands for `weight` of them: a call from another cluster, or one of any other kind. `draw` is a
    /// random word, which says who loses his row if there are too many.
    ///
    /// # Panics
    /// If the weight is not a positive number.
    pub fn sample(&mut self, actor: u64, from: Option<ClusterId>, weight: f32, draw: u64) {
        assert!(weight > 0.0 && weight.is_finite(), "a sample has no weight: {weight}");
        if from.is_some() && self.rows.len() >= ROWS_MAX && !self.rows.contains_key(&actor) {
            let unlucky = self.rows.range(draw..).chain(&self.rows).next().map(|(other, _)| *other);
            unlucky.map(|other| self.rows.remove(&other));
        }
        let row = match from {
            Some(_) => self.rows.entry(actor).or_default(),
            None => match self.rows.get_mut(&actor) {
                Some(row) => row,
                None => return,
            },
        };
        // One sample alone decides nothing, however much it stands for.
        let memory = MEMORY.max(weight * SAMPLES_MIN);
        let by = -(weight * (-1.0 / memory).ln_1p()).exp_m1();
        row.iter_mut().for_each(|(_, part)| *part *= 1.0 - by);
        let Some(from) = from else { return };
        match row.iter_mut().find(|(cluster, part)| *cluster == from && *part > 0.0) {
            Some((_, part)) => *part += by,
            None => {
                if let Some(least) = row.iter_mut().min_by(|(_, one), (_, other)| one.total_cmp(other)) {
                    *least = (from, by);
                }
            }
        }
    }

    /// The actors that had better live in another cluster, and in which one.
    pub fn wishes(&self) -> impl Iterator<Item = (u64, ClusterId)> {
        self.rows.iter().filter_map(|(actor, row)| {
            let (cluster, _) = row.iter().find(|(_, part)| *part >= PART_MIN)?;
            Some((*actor, *cluster))
        })
    }

    /// Forgets an actor: it has left, or is about to.
    pub fn forget(&mut self, actor: u64) {
        self.rows.remove(&actor);
    }
}

/// Messages of an actor that count.
pub const MEMORY: f32 = 64.0;
/// The part of them that has to come from one cluster.
pub const PART_MIN: f32 = 2.0 / 3.0;
/// As many samples count at least.
const SAMPLES_MIN: f32 = 8.0;
/// Clusters that are kept for each actor.
const CLUSTERS: usize = 2;
/// Actors that are kept.
const ROWS_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::mix;

    const FAR: ClusterId = ClusterId(7);
    const OTHER: ClusterId = ClusterId(9);

    /// Samples of one actor: so many of each ten come from these clusters.
    fn mixed(callers: &mut Callers, samples: u64, far: u64, other: u64) -> usize {
        let mut wished = 0;
        for number in 0..samples {
            let from = match mix(number) % 10 {
                at if at < far => Some(FAR),
                at if at < far + other => Some(OTHER),
                _ => None,
            };
            callers.sample(1, from, 1.0, number);
            wished += callers.wishes().count();
        }
        wished
    }

    #[test]
    fn who_is_called_from_one_cluster_wishes_to_be_there_after_some_seventy_calls() {
        let mut callers = Callers::default();
        assert_eq!(mixed(&mut callers, 64, 10, 0), 0);
        assert!(mixed(&mut callers, 16, 10, 0) > 0);
        assert_eq!(callers.wishes().collect::<Vec<_>>(), [(1, FAR)]);
        callers.forget(1);
        assert_eq!(callers.wishes().count(), 0);
    }

    #[test]
    fn who_is_called_from_everywhere_stays() {
        assert_eq!(mixed(&mut Callers::default(), 10_000, 4, 4), 0);
        assert_eq!(mixed(&mut Callers::default(), 10_000, 4, 0), 0);
        let often = mixed(&mut Callers::default(), 1_000, 9, 0);
        assert!(often > 800, "{often}");
    }

    #[test]
    fn a_coarse_sample_alone_moves_nobody_and_few_of_them_count_as_one() {
        let mut callers = Callers::default();
        for _ in 0..8 {
            callers.sample(1, Some(FAR), 1_000.0, 0);
            assert_eq!(callers.wishes().count(), 0);
        }
        callers.sample(1, Some(FAR), 1_000.0, 0);
        assert_eq!(callers.wishes().count(), 1);
    }

    #[test]
    fn there_are_so_many_rows_and_none_for_who_is_called_from_here_alone() {
        let mut callers = Callers::default();
        for actor in 0..20_000 {
            callers.sample(mix(actor), None, 1.0, mix(actor));
        }
        assert!(callers.rows.is_empty());
        for actor in 0..20_000 {
            callers.sample(mix(actor), Some(FAR), 1.0, mix(actor + 1));
        }
        assert_eq!(callers.rows.len(), ROWS_MAX);
    }
}
