//! What is told of a schedule that violates something.

use std::fmt;

use greenroom_sim::test_name;

use crate::deviations::Deviations;
use crate::run::Told;

/// A schedule that breaks a test.
#[derive(Clone, Debug)]
pub struct Failure {
    pub(crate) test: String,
    pub(crate) violated: String,
    pub(crate) schedule: u64,
    pub(crate) schedules: u64,
    /// Runs that it took to make it short; `None` if that was not tried, or failed.
    pub(crate) shrunk: Option<usize>,
    pub(crate) replay: String,
    pub(crate) deviations: usize,
    pub(crate) told: Vec<Told>,
}

impl Failure {
    /// What was told of the schedule that is the first of `schedule`, of as many as the second.
    pub(crate) fn new(violated: String, schedule: (u64, u64), shrunk: Option<usize>, told: Vec<Told>) -> Self {
        let left = Deviations::of(&told);
        let (deviations, replay) = (left.0.len(), left.to_string());
        let (schedule, schedules) = schedule;
        Self { test: test_name(), violated, schedule, schedules, shrunk, replay, deviations, told }
    }

    /// What was violated.
    pub fn violated(&self) -> &str {
        &self.violated
    }

    /// Which schedule broke it first, counted from 1.
    pub fn schedule(&self) -> u64 {
        self.schedule
    }

    /// The schedule, for [`Explore::replay`](crate::Explore::replay).
    pub fn replay(&self) -> &str {
        &self.replay
    }

    /// How often it leaves the default order.
    pub fn deviations(&self) -> usize {
        self.deviations
    }

    /// The names of its steps.
    pub fn steps(&self) -> impl Iterator<Item = &str> {
        self.told.iter().map(|step| step.name.as_str())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: violated: {}", self.test, self.violated)?;
        let (steps, deviations) = (self.told.len(), self.deviations);
        let shrunk = self.shrunk.map_or_else(String::new, |runs| format!(", shrunk in {runs} runs"));
        writeln!(
            f,
            "  schedule {} of {}{shrunk}: {steps} steps, {deviations} of them before their time",
            self.schedule, self.schedules
        )?;
        for (at, Told { name, instead_of }) in self.told.iter().enumerate() {
            match instead_of {
                None => writeln!(f, "   {:>3}  {name}", at + 1)?,
                Some(other) => writeln!(f, " \u{25cf} {:>3}  {name:<40}  before  {other}", at + 1)?,
            }
        }
        write!(f, "  to replay it:  .replay({:?})", self.replay)
    }
}
