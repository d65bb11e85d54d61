//! How far an exchange may load one node and empty the other.
//!
//! Load is the share of its cores that a node uses, and then its activations. An actor weighs in both, and both must be in
//! balance.

use super::newcomers::NEARLY;
use super::survey::Load;
use super::{Checks, Tolerance};

/// Which of two nodes an actor goes to, as the one that chooses sees it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Way {
    /// From the proposer to the chooser.
    Take,
    /// From the chooser to the proposer.
    Give,
}

/// What some actors add to a node's load.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Weight {
    pub(super) cpu: i64,
    pub(super) activations: i64,
}

/// What a load is measured by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Measure {
    /// Millionths of the cores.
    Share,
    /// Activations.
    Count,
}

/// Two nodes on the scales, while actors go from one to the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Scales {
    /// The chooser's load, and the proposer's.
    loads: [Load; 2],
    first: [Load; 2],
    mean_share: i64,
    mean_count: i64,
    tolerance: Tolerance,
    /// Balance acts only well beyond its tolerance.
    hysteresis: bool,
    /// Balance by activations needs no node that is full, and fills one up to the mean that is δ below it.
    newcomers: bool,
    /// Whether the chooser, and the proposer, are being filled already.
    filling: [bool; 2],
    /// Whether anything is refused for balance.
    holds: bool,
}

impl Scales {
    /// The chooser's load and the proposer's, and what was heard of the nodes beside them.
    pub(super) fn new(
        [chooser, proposer]: [Load; 2],
        others: impl Iterator<Item = Load>,
        tolerance: Tolerance,
        checks: Checks,
    ) -> Self {
        let all = || [chooser, proposer].into_iter();
        let (mut busy, mut cores, mut activations, mut nodes) = (0_u64, 0_u64, 0_u64, 0_u64);
        for load in all().chain(others) {
            busy = busy.saturating_add(load.busy);
            cores += u64::from(load.cores.max(1));
            activations = activations.saturating_add(load.activations);
            nodes += 1;
        }
        let loads = [chooser, proposer];
        let (mean_share, mean_count) = (signed(busy / cores), signed(activations.div_ceil(nodes)));
        let Checks { hysteresis, newcomers, balance: holds, .. } = checks;
        let filling = [false; 2];
        Self { loads, first: loads, mean_share, mean_count, tolerance, hysteresis, newcomers, filling, holds }
    }

    /// The same, of a chooser and a proposer of which some are being filled.
    pub(super) fn filling(self, filling: [bool; 2]) -> Self {
        Self { filling, ..self }
    }

    /// Whether actors of this weight may go that way for locality: up to the mean and δ, and to a difference of δ, or to what was.
    pub(super) fn fits(&self, way: Way, weight: Weight) -> bool {
        !self.holds
            || [Measure::Share, Measure::Count].into_iter().all(|measure| {
                let (taker, giver) = self.after(way, weight, measure);
                let [had, gave] = ends(way, self.first).map(|load| of(load, measure));
                let (mean, delta) = (self.mean(measure), self.delta(measure));
                let adds = match measure {
                    Measure::Share => weight.cpu > 0,
                    Measure::Count => true,
                };
                !adds || (taker <= had.max(mean + delta) && taker - giver <= (had - gave).max(delta))
            })
    }

    /// Puts actors of this weight on the other side.
    pub(super) fn shift(&mut self, way: Way, weight: Weight) {
        let [chooser, proposer] = self.loads;
        let sign = if way == Way::Take { 1 } else { -1 };
        let Weight { cpu, activations } = weight;
        self.loads =
            [chooser.shifted(sign * cpu, sign * activations), proposer.shifted(-sign * cpu, -sign * activations)];
    }

    /// Which way balance itself moves actors, and by which measure; nothing if the two are near enough.
    pub(super) fn acts(&self) -> Option<(Way, Measure)> {
        [Way::Take, Way::Give].into_iter().find_map(|way| {
            let measure = [Measure::Share, Measure::Count].into_iter().find(|measure| {
                let [taker, giver] = ends(way, self.loads).map(|load| of(load, *measure));
                let far = match measure {
                    // What goes on needs no more than makes a difference.
                    Measure::Count if self.goes_on(way) => self.mean_count / signed(NEARLY),
                    // Unlike shares of cores, activations are counted and do not waver.
                    Measure::Count if self.newcomers => self.far_by_count(),
                    Measure::Share | Measure::Count => 2 * self.delta(*measure),
                };
                let full = match measure {
                    Measure::Share => giver > signed(self.tolerance.full_share),
                    Measure::Count => self.newcomers || giver >= self.mean_count + far,
                };
                let apart = if self.hysteresis { far } else { self.delta(*measure) };
                (full || !self.hysteresis) && giver - taker > apart && self.surplus(way, *measure) > 0
            })?;
            Some((way, measure))
        })
    }

    /// How much is still to go that way until one of the two is at the mean, or, unless it fills a newcomer, they differ by δ.
    pub(super) fn surplus(&self, way: Way, measure: Measure) -> i64 {
        let [taker, giver] = ends(way, self.loads).map(|load| of(load, measure));
        let mean = self.mean(measure);
        let apart = if self.fills(way, measure) { 0 } else { self.delta(measure) };
        (giver - taker - apart).min(giver - mean).min(mean - taker)
    }

    /// Whether who takes had so few activations that all who have more than the mean are to fill it.
    fn fills(&self, way: Way, measure: Measure) -> bool {
        let [taker, _] = ends(way, self.first).map(|load| of(load, measure));
        let begins = self.newcomers && measure == Measure::Count && taker < self.mean_count - self.delta(measure);
        begins || (measure == Measure::Count && self.goes_on(way))
    }

    /// Whether who takes is being filled already.
    fn goes_on(&self, way: Way) -> bool {
        let [taker, _] = ends(way, self.filling);
        self.newcomers && taker
    }

    /// How far two nodes differ in activations when balance begins.
    fn far_by_count(&self) -> i64 {
        signed(self.tolerance.far_by_count(self.mean_count.unsigned_abs()))
    }

    /// What so much of it is of the measure, at the node that gives.
    pub(super) fn amount(&self, way: Way, measure: Measure, weight: Weight) -> i64 {
        let [_, giver] = ends(way, self.loads);
        match measure {
            Measure::Share => weight.cpu / i64::from(giver.cores.max(1)),
            Measure::Count => weight.activations,
        }
    }

    fn after(&self, way: Way, weight: Weight, measure: Measure) -> (i64, i64) {
        let [taker, giver] = ends(way, self.loads);
        let Weight { cpu, activations } = weight;
        (of(taker.shifted(cpu, activations), measure), of(giver.shifted(-cpu, -activations), measure))
    }

    fn mean(&self, measure: Measure) -> i64 {
        match measure {
            Measure::Share => self.mean_share,
            Measure::Count => self.mean_count,
        }
    }

    fn delta(&self, measure: Measure) -> i64 {
        match measure {
            Measure::Share => signed(self.tolerance.share),
            Measure::Count => signed(self.tolerance.of_count(self.mean_count.unsigned_abs())),
        }
    }
}

impl Tolerance {
    /// δ in activations, of this mean.
    pub(super) fn of_count(&self, mean: u64) -> u64 {
        self.count_min.max(mean.saturating_mul(self.count_percent) / 100)
    }

    /// How far two nodes differ in activations when balance begins to act.
    pub(super) fn far_by_count(&self, mean: u64) -> u64 {
        self.of_count(mean).saturating_mul(3) / 2
    }
}

/// Who takes and who gives.
fn ends<T>(way: Way, [chooser, proposer]: [T; 2]) -> [T; 2] {
    if way == Way::Take { [chooser, proposer] } else { [proposer, chooser] }
}

fn of(load: Load, measure: Measure) -> i64 {
    match measure {
        Measure::Share => signed(load.share()),
        Measure::Count => signed(load.activations),
    }
}

/// So much that sums of some of them are numbers still.
fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX).min(i64::MAX / 1024)
}
