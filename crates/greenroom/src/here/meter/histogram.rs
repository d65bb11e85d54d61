//! How long something took, in 104 classes: four an octave, from a microsecond to a minute. Histograms add up, so that what is said
//! of a cluster is true and no mean of means.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A histogram that any thread may read.
pub(crate) struct Histogram([AtomicU64; CLASSES]);

/// What a histogram has at a moment, or several together.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(from = "Vec<(u8, u64)>", into = "Vec<(u8, u64)>")]
pub(crate) struct Distribution([u64; CLASSES]);

impl Default for Histogram {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; CLASSES])
    }
}

impl Histogram {
    /// Takes in that so many have taken `took`, from the one thread that writes.
    pub(super) fn add(&self, took: Duration, count: u64) {
        let class = &self.0[class(took)];
        class.store(class.load(Ordering::Relaxed) + count, Ordering::Relaxed);
    }

    /// Takes in that one has taken `took`, if several threads write.
    pub(crate) fn add_shared(&self, took: Duration) {
        self.0[class(took)].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Distribution {
        Distribution(std::array::from_fn(|at| self.0[at].load(Ordering::Relaxed)))
    }
}

impl Default for Distribution {
    fn default() -> Self {
        Self([0; CLASSES])
    }
}

impl Distribution {
    pub(crate) fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, count)| *sum = sum.saturating_add(count));
    }

    /// What has come since `before`, which is an earlier reading of the same.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at].saturating_sub(before.0[at])))
    }

    /// Takes in that so many more have taken less than a millisecond.
    pub(super) fn add_quick(&mut self, count: u64) {
        self.0[class(Duration::from_micros(999))] += count;
    }

    /// How many there are in each class that has some, by where it ends.
    pub(crate) fn classes(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        self.0.iter().enumerate().filter(|(_, count)| **count > 0).map(|(class, count)| (end(class), *count))
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// A time that the part `share` of them has not exceeded, at most a quarter too long; `None` if there are none.
    pub(crate) fn quantile(&self, share: f64) -> Option<Duration> {
        let wanted = (self.count() as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        let class = self.0.iter().position(|count| {
            seen = count.saturating_add(seen);
            seen >= wanted
        })?;
        Some(end(class))
    }

    /// How many have taken no longer than `bound`, which ends a class.
    pub(crate) fn up_to(&self, bound: Duration) -> u64 {
        let classes = (0..CLASSES).take_while(|class| end(*class) <= bound);
        classes.map(|class| self.0[class]).sum()
    }

    /// All that they have taken together, by the middles of their classes.
    pub(crate) fn sum(&self) -> Duration {
        let middle = |class: usize| (begin(class) + end(class)).as_secs_f64() / 2.0;
        Duration::from_secs_f64(self.0.iter().enumerate().map(|(class, count)| middle(class) * *count as f64).sum())
    }
}

/// The classes that have some, by their numbers: so it travels between nodes.
impl From<Distribution> for Vec<(u8, u64)> {
    fn from(of: Distribution) -> Self {
        (0..).zip(of.0).filter(|(_, count)| *count > 0).collect()
    }
}

impl From<Vec<(u8, u64)>> for Distribution {
    fn from(said: Vec<(u8, u64)>) -> Self {
        let mut all = Self::default();
        for (class, count) in said {
            let class = &mut all.0[usize::from(class).min(CLASSES - 1)];
            *class = class.saturating_add(count);
        }
        all
    }
}

/// The class of a time: the first one has what is shorter than a microsecond and a quarter, the last one what is longer than all
/// others.
fn class(took: Duration) -> usize {
    let quarters = (took.as_nanos() * u128::from(PARTS) / 1_000).min(u128::from(u64::MAX)) as u64;
    let octave = quarters.max(PARTS).ilog2() - PARTS.ilog2();
    let part = (quarters.max(PARTS) >> octave) - PARTS;
    (octave as usize * PARTS as usize + part as usize).min(CLASSES - 1)
}

/// Where a class ends.
fn end(class: usize) -> Duration {
    let (octave, part) = (class as u64 / PARTS, class as u64 % PARTS);
    Duration::from_nanos(((PARTS + part + 1) << octave) * 1_000 / PARTS)
}

fn begin(class: usize) -> Duration {
    class.checked_sub(1).map_or(Duration::ZERO, end)
}

/// Classes of one octave.
const PARTS: u64 = 4;
const CLASSES: usize = 104;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_in_the_class_that_ends_behind_it() {
        for nanos in (0..40).flat_map(|octave| [0, 1, 17].map(|more| (1_u64 << octave) + more)) {
            let took = Duration::from_nanos(nanos);
            let class = class(took);
            assert!(begin(class) <= took || class == 0, "{took:?} is before class {class}");
            assert!(took < end(class) || class == CLASSES - 1, "{took:?} is behind class {class}");
        }
        assert_eq!(end(0), Duration::from_nanos(1_250));
        assert_eq!(end(3), Duration::from_micros(2));
        assert_eq!(class(Duration::from_secs(64)), CLASSES - 1);
        assert_eq!(class(Duration::MAX), CLASSES - 1);
    }

    #[test]
    fn what_several_have_is_added_before_it_is_divided() {
        let (quick, slow) = (Histogram::default(), Histogram::default());
        quick.add(Duration::from_micros(10), 98);
        slow.add(Duration::from_millis(50), 2);
        let mut both = quick.read();
        both.add(&slow.read());
        assert_eq!(both.count(), 100);
        let quantile = |share| both.quantile(share).unwrap();
        assert!(quantile(0.98) <= Duration::from_micros(13), "{:?}", quantile(0.98));
        assert!((Duration::from_millis(50)..Duration::from_millis(63)).contains(&quantile(0.99)));
        assert_eq!(both.up_to(Duration::from_micros(11)), 0, "a bound within a class has none of it");
        assert_eq!(both.up_to(Duration::from_micros(1_024)), 98);
        let sum = both.sum().as_secs_f64();
        assert!((0.09..0.13).contains(&sum), "{sum}");
    }

    #[test]
    fn what_another_node_says_of_classes_is_bounded() {
        let said: Distribution = vec![(0, 2), (255, u64::MAX), (255, 1)].into();
        assert_eq!((said.count(), said.quantile(0.5)), (u64::MAX, Some(end(CLASSES - 1))));
        assert_eq!(Vec::from(said), [(0, 2), (103, u64::MAX)]);
    }

    #[test]
    fn of_nothing_there_is_no_quantile() {
        assert_eq!(Distribution::default().quantile(0.5), None);
    }
}
