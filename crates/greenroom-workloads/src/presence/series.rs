//! Figures over time.

use serde_json::{Map, Value};

use super::leg::Leg;
use super::rounded;
use crate::kinds::presence::Ways;

/// What the nodes have spent and moved since they began.
pub(super) struct Sample {
    /// Seconds of the processors, of each node.
    pub(super) cpu: Vec<f64>,
    /// Of each node, where that is known.
    pub(super) activations: Vec<u64>,
    /// Actors that were moved.
    pub(super) moves: u64,
}

/// What happened in a second, or in several.
#[derive(Clone, Default, Debug)]
pub(super) struct Second {
    pub(super) answers: u64,
    pub(super) ways: Ways,
    /// Seconds of the processors, of each node.
    pub(super) cpu: Vec<f64>,
    /// Of each node at its end, where that is known.
    pub(super) activations: Vec<u64>,
    pub(super) moves: u64,
}

impl Second {
    /// Each second of a run, by what clients have seen and what nodes have spent. What clients have seen after the last sample
    /// is left out.
    pub(super) fn all(seen: &[(u64, Ways)], samples: &[Sample]) -> Vec<Self> {
        let spans = samples.windows(2).map(|pair| {
            let [before, after] = pair else { return Self::default() };
            Self {
                cpu: after.cpu.iter().zip(&before.cpu).map(|(after, before)| after - before).collect(),
                activations: after.activations.clone(),
                moves: after.moves.saturating_sub(before.moves),
                ..Self::default()
            }
        });
        let seen = seen.iter().copied().chain(std::iter::repeat(Default::default()));
        spans.zip(seen).map(|(span, (answers, ways))| Self { answers, ways, ..span }).collect()
    }

    /// All of them together.
    pub(super) fn sum(seconds: &[Self]) -> Self {
        let mut sum = Self::default();
        for second in seconds {
            sum.answers += second.answers;
            sum.ways += second.ways;
            sum.moves += second.moves;
            sum.activations.clone_from(&second.activations);
            sum.cpu.resize(second.cpu.len(), 0.0);
            sum.cpu.iter_mut().zip(&second.cpu).for_each(|(all, one)| *all += one);
        }
        sum
    }

    /// The part of the messages that go from node to node.
    pub(super) fn remote(&self) -> f64 {
        self.ways.away as f64 / self.ways.messages().max(1) as f64
    }

    pub(super) fn moves_per_1000_messages(&self) -> f64 {
        self.moves as f64 * 1e3 / self.ways.messages().max(1) as f64
    }
}

/// A figure of a second.
type Figure = fn(&Second) -> f64;

/// What is shown over time: a list of points each, which hold the second and a value of each leg.
pub(super) fn over_time(legs: &[Leg]) -> Vec<(String, Value)> {
    let shown: [(&str, Figure); 3] = [
        ("remote_fraction_over_time", |second| rounded(second.remote())),
        ("moves_over_time", |second| second.moves as f64),
        ("cpu_cores_over_time", |second| rounded(second.cpu.iter().sum())),
    ];
    let seconds = legs.iter().map(|leg| leg.seconds().len()).max().unwrap_or(0);
    let point = |at: usize, of: Figure| {
        let mut point = Map::from_iter([("second".to_owned(), Value::from(at))]);
        for leg in legs {
            if let Some(second) = leg.seconds().get(at) {
                point.insert(leg.name().to_owned(), of(second).into());
            }
        }
        Value::Object(point)
    };
    let has_cpu = legs.iter().any(Leg::has_cpu);
    let shown = shown.into_iter().filter(|(name, _)| has_cpu || !name.starts_with("cpu_"));
    shown.map(|(name, of)| (name.to_owned(), (0..seconds).map(|at| point(at, of)).collect())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_what_was_spent_between_its_samples_and_what_was_answered_in_it() {
        let samples = [(1.0, 5), (1.5, 9), (1.75, 9)].map(|(cpu, moves)| Sample {
            cpu: vec![cpu, 0.0],
            activations: vec![moves],
            moves,
        });
        let ways = |away| Ways { near: 6, beside: 0, away };
        let seconds = Second::all(&[(3, ways(2)), (4, ways(0)), (1, ways(1))], &samples);
        assert_eq!(seconds.len(), 2, "the third is not over");
        let first = &seconds[0];
        assert_eq!((first.answers, first.moves, first.remote(), first.cpu[0]), (3, 4, 0.25, 0.5));
        let all = Second::sum(&seconds);
        assert_eq!((all.answers, all.moves, &all.cpu, &all.activations), (7, 4, &vec![0.75, 0.0], &vec![9]));
        assert_eq!(all.moves_per_1000_messages(), 4.0 * 1e3 / 14.0);
    }
}
