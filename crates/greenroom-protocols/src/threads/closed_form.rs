//! The paper's own sizes: Theorem 2, and where its condition does not hold, the multiplier θ of the bound on cores.
//!
//! It takes a stage of t threads for one server that is t times as fast (M/M/1 with μ = t·s). A call that finds a free thread
//! is served no faster for there being others, so that this asks for many more threads than cut any wait.

use std::time::Duration;

/// A stage of the paper.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stage {
    /// Calls a second: λ.
    pub rate: f64,
    /// Time that a call needs a thread: 1/s.
    pub service: Duration,
    /// The part of that in which it needs a core: β.
    pub busy_part: f64,
}

/// Threads of each stage that make its mean latency and η for each thread together least.
#[derive(Clone, PartialEq, Debug)]
pub struct Sizes {
    /// Of each stage, in parts of threads.
    pub threads: Vec<f64>,
    /// What a core is worth, in seconds; 0 where there are enough of them, and Theorem 2 holds.
    pub theta: f64,
}

/// The sizes of all stages with so many cores: Σ tβ is at most that. `None` if there are not enough cores for the work.
pub fn sizes(stages: &[Stage], eta: Duration, cores: f64) -> Option<Sizes> {
    let needed: f64 = stages.iter().map(|stage| stage.offered() * stage.busy_part).sum();
    if needed >= cores {
        return None;
    }
    let all: f64 = stages.iter().map(|stage| stage.rate).sum();
    let at = |theta: f64| -> Vec<f64> {
        let price = |stage: &Stage| all * (eta.as_secs_f64() + theta * stage.busy_part);
        stages.iter().map(|stage| stage.offered() + (stage.offered() / price(stage)).sqrt()).collect()
    };
    let used =
        |theta: f64| -> f64 { at(theta).iter().zip(stages).map(|(threads, stage)| threads * stage.busy_part).sum() };
    if used(0.0) <= cores {
        return Some(Sizes { threads: at(0.0), theta: 0.0 });
    }
    let (mut low, mut high) = (0.0, eta.as_secs_f64().max(1e-9));
    while used(high) > cores {
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..BISECTIONS {
        let middle = f64::midpoint(low, high);
        *(if used(middle) > cores { &mut low } else { &mut high }) = middle;
    }
    Some(Sizes { threads: at(high), theta: high })
}

impl Stage {
    fn offered(&self) -> f64 {
        self.rate * self.service.as_secs_f64()
    }

    /// The paper's mean latency with so many threads, by the rate of this stage.
    fn latency(&self, threads: usize) -> f64 {
        self.rate / (threads as f64 / self.service.as_secs_f64() - self.rate)
    }
}

impl Sizes {
    /// The same in whole threads: as many as all parts together, rounded, each where it cuts most latency.
    pub fn whole(&self, stages: &[Stage]) -> Vec<usize> {
        let mut whole: Vec<usize> = stages.iter().map(|stage| stage.offered() as usize + 1).collect();
        let all = self.threads.iter().sum::<f64>().round() as usize;
        while whole.iter().sum::<usize>() < all {
            let cut = |index: usize| stages[index].latency(whole[index]) - stages[index].latency(whole[index] + 1);
            let best = (0..stages.len()).max_by(|a, b| cut(*a).total_cmp(&cut(*b))).expect("there is a stage");
            whole[best] += 1;
        }
        whole
    }
}

/// Halvings of an interval after which a double has no more digits.
const BISECTIONS: usize = 64;
