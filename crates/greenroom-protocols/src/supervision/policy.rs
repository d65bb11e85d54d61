//! What is said about failures when an actor is spawned.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What becomes of a spawned actor that fails: whose turn panics, or that cannot be activated.
///
/// ```
/// # use std::time::Duration;
/// # use greenroom_protocols::supervision::Supervise;
/// let patient = Supervise::restart()
///     .at_most(5, Duration::from_secs(60))
///     .back_off(Duration::from_millis(50), Duration::from_secs(5))
///     .or_escalate();
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[must_use = "it does nothing until an actor is spawned with it"]
pub struct Supervise {
    pub(super) strategy: Strategy,
    pub(super) limit: Option<Limit>,
    pub(super) exhausted: Exhausted,
    pub(super) back_off: BackOff,
    together: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Strategy {
    Restart,
    Stop,
    Escalate,
}

/// What follows when the restarts are used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Exhausted {
    Stop,
    Escalate,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Limit {
    pub(super) restarts: u32,
    pub(super) period: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct BackOff {
    pub(super) initial: Duration,
    pub(super) max: Duration,
    pub(super) jitter_percent: u8,
}

impl Supervise {
    /// Makes the actor anew, with the same address: its state is gone, what waits for it stays. By default after 100 ms, then
    /// twice as long with each failure in a row up to 10 s, each pause shortened by up to 20 % at random; the sixth failure
    /// within 30 s stops it.
    pub const fn restart() -> Self {
        Self::of(Strategy::Restart)
    }

    /// Ends the actor.
    pub const fn stop() -> Self {
        Self::of(Strategy::Stop)
    }

    /// Ends the actor, and lets its parent fail: a spawned parent is restarted, stopped or escalates in its turn, a virtual
    /// one ends its activation. Without a parent, the actor just ends.
    pub const fn escalate() -> Self {
        Self::of(Strategy::Escalate)
    }

    const fn of(strategy: Strategy) -> Self {
        Self {
            strategy,
            limit: Some(Limit { restarts: 5, period: Duration::from_secs(30) }),
            exhausted: Exhausted::Stop,
            back_off: BackOff { initial: Duration::from_millis(100), max: Duration::from_secs(10), jitter_percent: 20 },
            together: false,
        }
    }

    /// Restarts it at most `restarts` times (never more than [`RESTARTS_MAX`]) within any `period`; the next failure
    /// stops it.
    pub const fn at_most(mut self, restarts: u32, period: Duration) -> Self {
        let restarts = if restarts < RESTARTS_MAX { restarts } else { RESTARTS_MAX };
        self.limit = Some(Limit { restarts, period });
        self
    }

    /// Restarts it however often it fails. Its pauses still grow.
    pub const fn for_ever(mut self) -> Self {
        self.limit = None;
        self
    }

    /// Escalates, instead of stopping it, when the restarts are used up.
    pub const fn or_escalate(mut self) -> Self {
        self.exhausted = Exhausted::Escalate;
        self
    }

    /// Pauses for `initial` before a restart, and twice as long with each failure in a row, up to `max`.
    pub const fn back_off(mut self, initial: Duration, max: Duration) -> Self {
        self.back_off.initial = initial;
        self.back_off.max = max;
        self
    }

    /// Shortens each pause at random, by up to so many percent: so those that failed together do not all return at once.
    pub const fn jitter(mut self, percent: u8) -> Self {
        self.back_off.jitter_percent = percent;
        self
    }

    /// All for one: when it is restarted or stopped for a failure, so are its siblings that were spawned with this.
    pub const fn together(mut self) -> Self {
        self.together = true;
        self
    }

    /// Whether its siblings share its fate.
    pub const fn is_together(&self) -> bool {
        self.together
    }
}

/// Most restarts that a limit remembers.
pub const RESTARTS_MAX: u32 = 1000;
