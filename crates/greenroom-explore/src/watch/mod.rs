//! What code finds that asks the system and not its world while a step runs: clocks of the standard library show the schedule's time, and
//! who starts a thread or lets it sleep is noticed.
//!
//! A program that is linked with this crate calls [`system`]'s functions in place of the C library's. Outside of steps, and
//! on other threads, they do what those do. Where there is no such library, or without the feature `watch`, nothing is watched.

#[cfg(all(feature = "watch", target_os = "linux", target_env = "gnu"))]
mod system;

use std::cell::Cell;
use std::time::{Duration, Instant};

use greenroom_sim::Sim;

/// The time that clocks show in a step.
#[derive(Clone, Copy, Debug)]
struct Shown {
    /// As [`Instant`] counts it.
    monotonic: Duration,
    /// Since 1970.
    wall: Duration,
}

/// What a step has done that no schedule decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(
    not(all(feature = "watch", target_os = "linux", target_env = "gnu")),
    expect(dead_code, reason = "nobody notices it")
)]
pub(crate) enum Noticed {
    /// It has started a thread.
    Thread,
    /// It would have let its thread sleep.
    Sleep,
}

thread_local! {
    /// What clocks show, while a step runs on this thread.
    static SHOWN: Cell<Option<Shown>> = const { Cell::new(None) };
    /// What the step has done first.
    static NOTICED: Cell<Option<Noticed>> = const { Cell::new(None) };
    /// A moment, and how [`Instant`] counts it.
    static COUNTED: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
}

/// Watches the steps of a schedule.
pub(crate) struct Watch {
    sim: Sim,
    shown: Shown,
    noticed: Option<Noticed>,
}

impl Watch {
    pub(crate) fn new(sim: Sim) -> Self {
        Self { sim, shown: Shown { monotonic: Duration::ZERO, wall: Duration::ZERO }, noticed: None }
    }

    /// Sets the clocks of the next steps: time has passed. To be called where the schedule runs.
    pub(crate) fn look_at_clock(&mut self) {
        self.shown = Shown { monotonic: counted(tokio::time::Instant::now().into_std()), wall: self.sim.wall() };
    }

    /// Runs what belongs to a step.
    pub(crate) fn step<R>(&mut self, run: impl FnOnce() -> R) -> R {
        /// Clocks are the system's again, also if `run` panics.
        struct Over;
        impl Drop for Over {
            fn drop(&mut self) {
                SHOWN.set(None);
            }
        }
        NOTICED.set(None);
        SHOWN.set(Some(self.shown));
        let over = Over;
        let result = run();
        drop(over);
        self.noticed = self.noticed.or(NOTICED.take());
        result
    }

    /// What was noticed since somebody asked.
    pub(crate) fn noticed(&mut self) -> Option<Noticed> {
        self.noticed.take()
    }
}

/// How [`Instant`] counts `moment`.
fn counted(moment: Instant) -> Duration {
    let (known, count) = COUNTED.get().unwrap_or_else(|| {
        let monotonic = real_monotonic();
        SHOWN.set(Some(Shown { monotonic, wall: Duration::ZERO }));
        let known = Instant::now();
        SHOWN.set(None);
        COUNTED.set(Some((known, monotonic)));
        (known, monotonic)
    });
    match moment.checked_duration_since(known) {
        Some(later) => count + later,
        None => count.saturating_sub(known - moment),
    }
}

#[cfg(all(feature = "watch", target_os = "linux", target_env = "gnu"))]
use self::system::real_monotonic;

#[cfg(not(all(feature = "watch", target_os = "linux", target_env = "gnu")))]
fn real_monotonic() -> Duration {
    Duration::ZERO
}
