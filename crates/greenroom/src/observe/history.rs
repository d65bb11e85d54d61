//! The last hour of a node, in two rings: five minutes by the second, and an hour by ten.

use std::collections::VecDeque;
use std::time::Duration;

use greenroom_world::Timestamp;
use serde::{Deserialize, Serialize};

use crate::here::Here;
use crate::here::built_in::is_built_in;
use crate::here::meter::{Class, Distribution, Histogram, MethodFigures};

/// What a node has counted since it began.
pub(super) struct Reading {
    pub(super) at: Timestamp,
    calls: u64,
    failed: u64,
    activations: u64,
    near: u64,
    far: u64,
    outside: Distribution,
    busy_nanos: Vec<u64>,
}

/// What happened in a second, or in several.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Point {
    /// Turns of the program's own actors that began, and messages to them that failed.
    pub(crate) calls: u64,
    pub(crate) failed: u64,
    /// Activations at its end.
    pub(crate) activations: u64,
    /// Messages between actors within the node, and from and to others: by samples.
    pub(crate) near: u64,
    pub(crate) far: u64,
    /// How long calls from outside took.
    pub(crate) outside: Distribution,
}

/// What is kept of the past. `None` is a time of which nothing is known.
#[derive(Default)]
pub(super) struct Rings {
    seconds: VecDeque<Option<Point>>,
    tens: VecDeque<Option<Point>>,
    /// Seconds since the last ten were complete, and what happened in them.
    gathered: u32,
    gathering: Option<Point>,
}

impl Reading {
    /// What is published at `at`.
    pub(super) fn of(node: &Here, outside: &Histogram, at: Timestamp) -> Self {
        let mut methods = MethodFigures::default();
        for gauges in node.gauges() {
            gauges.meters().read(|kind, _, meter| {
                if !is_built_in(kind.name()) {
                    methods.count(meter);
                }
            });
        }
        let figures = node.figures();
        let messages = |names: &[&str]| {
            let named = figures.iter().filter(|figure| names.contains(&figure.name()));
            named.map(|figure| figure.value() as u64).sum()
        };
        Self {
            at,
            calls: methods.turns,
            failed: Class::ALL.iter().map(|class| methods.failed(*class)).sum(),
            activations: node.activations(),
            near: messages(&["greenroom_messages_near_total", "greenroom_messages_beside_total"]),
            far: messages(&["greenroom_messages_away_total", "greenroom_messages_abroad_total"]),
            outside: outside.read(),
            busy_nanos: node.gauges().iter().map(|gauges| gauges.busy_nanos()).collect(),
        }
    }

    /// What has happened since `before`.
    pub(super) fn since(&self, before: &Self) -> Point {
        Point {
            calls: self.calls.saturating_sub(before.calls),
            failed: self.failed.saturating_sub(before.failed),
            activations: self.activations,
            near: self.near.saturating_sub(before.near),
            far: self.far.saturating_sub(before.far),
            outside: self.outside.since(&before.outside),
        }
    }

    /// How busy each shard has been since `before`: 1 is always.
    pub(super) fn busy_since(&self, before: &Self) -> Vec<f64> {
        let passed = self.at.since(before.at).as_nanos().max(1) as f64;
        let busy = self.busy_nanos.iter().zip(&before.busy_nanos);
        busy.map(|(now, before)| (now.saturating_sub(*before) as f64 / passed).min(1.0)).collect()
    }
}

impl Point {
    /// Takes in what happened after that, or at the same time elsewhere.
    pub(crate) fn add(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.calls, other.calls),
            (&mut self.failed, other.failed),
            (&mut self.near, other.near),
            (&mut self.far, other.far),
        ] {
            *sum = sum.saturating_add(more);
        }
        self.outside.add(&other.outside);
    }
}

impl Rings {
    /// Takes in what happened in the time `passed` until now: if that was longer than it should be, there is nothing to say of the
    /// seconds before the last.
    pub(super) fn push(&mut self, passed: Duration, point: Point) {
        let missed = passed.as_secs_f64().round().clamp(1.0, TENS_LEN as f64 * 10.0) as u32 - 1;
        (0..missed).for_each(|_| self.pass(None));
        self.pass(Some(point));
    }

    fn pass(&mut self, second: Option<Point>) {
        if let Some(second) = &second {
            let sum = self.gathering.get_or_insert_default();
            sum.add(second);
            sum.activations = second.activations;
        }
        keep(&mut self.seconds, second, SECONDS_LEN);
        self.gathered += 1;
        if self.gathered == TEN {
            self.gathered = 0;
            keep(&mut self.tens, self.gathering.take(), TENS_LEN);
        }
    }

    /// The last `seconds`, as far as they are kept: how many seconds a point stands for, and the points, the newest last.
    pub(super) fn last(&self, seconds: u32) -> (u32, Vec<Option<Point>>) {
        let (step, ring) = if seconds as usize <= SECONDS_LEN { (1, &self.seconds) } else { (TEN, &self.tens) };
        let wanted = (seconds / step) as usize;
        (step, ring.iter().skip(ring.len().saturating_sub(wanted)).cloned().collect())
    }
}

fn keep(ring: &mut VecDeque<Option<Point>>, point: Option<Point>, len_max: usize) {
    if ring.len() == len_max {
        ring.pop_front();
    }
    ring.push_back(point);
}

/// Points that are kept of a second each, and of ten.
const SECONDS_LEN: usize = 300;
const TENS_LEN: usize = 360;
const TEN: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(calls: u64) -> Point {
        Point { calls, activations: calls, ..Point::default() }
    }

    fn told((step, points): (u32, Vec<Option<Point>>)) -> (u32, Vec<Option<u64>>) {
        (step, points.into_iter().map(|point| point.map(|point| point.calls)).collect())
    }

    #[test]
    fn five_minutes_are_kept_by_the_second_and_an_hour_by_ten() {
        let mut rings = Rings::default();
        (1..=4_000).for_each(|second| rings.push(Duration::from_secs(1), calls(second)));
        assert_eq!(told(rings.last(3)), (1, vec![Some(3_998), Some(3_999), Some(4_000)]));
        assert_eq!(rings.last(300).1.len(), 300);
        let (step, tens) = rings.last(u32::MAX);
        assert_eq!((step, tens.len()), (10, 360));
        let last = tens.last().cloned().flatten().unwrap();
        assert_eq!((last.calls, last.activations), ((3_991..=4_000).sum(), 4_000), "counts add up, a level does not");
    }

    #[test]
    fn of_seconds_without_a_reading_nothing_is_said() {
        let mut rings = Rings::default();
        rings.push(Duration::from_millis(1_020), calls(1));
        rings.push(Duration::from_millis(3_100), calls(5));
        assert_eq!(told(rings.last(10)), (1, vec![Some(1), None, None, Some(5)]));
        rings.push(Duration::MAX, calls(7));
        assert_eq!(
            told(rings.last(2)),
            (1, vec![None, Some(7)]),
            "a machine that slept for ages has its rings all the same"
        );
    }
}
