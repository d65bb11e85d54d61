//! What a node says of its pool for what blocks.

use std::time::Duration;

use greenroom::Node;

/// The pool at one moment.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(super) struct PoolState {
    /// Threads that there are.
    pub(super) threads: u64,
    /// Threads that there may be.
    pub(super) threads_max: u64,
    /// Closures that had a thread so far, and for how long these had waited for it together.
    pub(super) begun: u64,
    pub(super) waited: Duration,
}

impl PoolState {
    pub(super) fn of(node: &Node) -> Self {
        let figures = node.figures();
        let value =
            |name: &str| figures.iter().find(|figure| figure.name() == name).map_or(0.0, |figure| figure.value());
        Self {
            threads: value("greenroom_blocking_threads") as u64,
            threads_max: value("greenroom_blocking_threads_max") as u64,
            begun: value("greenroom_blocking_begun_total") as u64,
            waited: Duration::from_secs_f64(value("greenroom_blocking_wait_seconds_total")),
        }
    }

    /// The mean wait for a thread since `before`; `None` if nothing had one.
    pub(super) fn wait_since(&self, before: &Self) -> Option<Duration> {
        let begun = u32::try_from(self.begun.saturating_sub(before.begun)).ok()?;
        self.waited.saturating_sub(before.waited).checked_div(begun)
    }
}
