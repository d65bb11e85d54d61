//! What the pool's closures ask for, measured window by window, and how many threads follow from it: the thin loop around the
//! machine of `greenroom_protocols::threads`.

use std::mem;
use std::time::Duration;

use greenroom_protocols::threads::{Class, Config, Pool, Why};
use greenroom_world::Timestamp;

use super::settings::POOL_THREADS_MAX;

/// Sizes a pool.
pub(super) struct Sizing {
    machine: Pool,
    /// When the window began.
    began: Timestamp,
    seen: Seen,
    /// Of the last window in which closures ended.
    parts: Parts,
}

/// What one closure took, or several together.
#[derive(Clone, Copy, Default)]
pub(super) struct Measured {
    /// Time for which it had its thread.
    pub(super) wall: Duration,
    /// Time for which that ran.
    pub(super) cpu: Duration,
    /// Time for which that was ready and had no core; `None` where the system does not say.
    pub(super) ready: Option<Duration>,
}

/// What had threads in a window. Of closures that had theirs before it, or have them after it, only what is within it counts: so
/// those that run for many windows keep their threads in each.
#[derive(Default)]
struct Seen {
    closures: f64,
    seconds: f64,
    squares: f64,
    ended: Measured,
    /// Whether the system said of all that have ended for how long they had no core.
    ended_unsaid: bool,
}

/// The parts of its time in which a closure ran, and in which it was ready and had no core.
#[derive(Clone, Copy, Default)]
struct Parts {
    cpu: f64,
    ready: Option<f64>,
}

impl Sizing {
    /// For a pool that may keep so many cores busy.
    pub(super) fn new(cores: f64) -> Self {
        let config = Config { cores, threads_min: THREADS_MIN, threads_max: POOL_THREADS_MAX, ..Config::default() };
        Self { machine: Pool::new(config), began: Timestamp::default(), seen: Seen::default(), parts: Parts::default() }
    }

    /// The first window begins.
    pub(super) fn begin(&mut self, now: Timestamp) {
        self.began = now;
    }

    /// Threads that there are to be.
    pub(super) fn threads(&self) -> usize {
        self.machine.threads()
    }

    /// Why there are to be so many.
    pub(super) fn why(&self) -> &Why {
        self.machine.why()
    }

    /// A closure has ended that had its thread from `began` on.
    pub(super) fn ended(&mut self, began: Timestamp, now: Timestamp, measured: Measured) {
        self.seen.note(now.since(began.max(self.began)));
        let ended = &mut self.seen.ended;
        ended.wall += measured.wall;
        ended.cpu += measured.cpu;
        match measured.ready {
            Some(ready) => *ended.ready.get_or_insert_default() += ready,
            None => self.seen.ended_unsaid = true,
        }
    }

    /// Ends a window, in which so many closures still wait, and others run since these times. How many threads there are to
    /// be, if that has changed.
    pub(super) fn window(
        &mut self,
        now: Timestamp,
        waiting: usize,
        running: impl Iterator<Item = Timestamp>,
    ) -> Option<usize> {
        running.for_each(|began| self.seen.note(now.since(began.max(self.began))));
        let span = now.since(mem::replace(&mut self.began, now)).as_secs_f64();
        let seen = mem::take(&mut self.seen);
        self.parts = seen.parts().unwrap_or(self.parts);
        if span <= 0.0 {
            return None;
        }
        let class = seen.class(span, waiting, self.parts);
        self.machine.window(class.as_slice(), 0.0)
    }
}

impl Seen {
    fn note(&mut self, had_thread: Duration) {
        let seconds = had_thread.as_secs_f64();
        self.closures += 1.0;
        self.seconds += seconds;
        self.squares += seconds * seconds;
    }

    fn parts(&self) -> Option<Parts> {
        let wall = self.ended.wall.as_secs_f64();
        let part = |time: Duration| time.as_secs_f64() / wall;
        let ready = self.ended.ready.filter(|_| !self.ended_unsaid).map(part);
        (wall > 0.0).then(|| Parts { cpu: part(self.ended.cpu), ready })
    }

    /// What asked for a thread, as one class. What still waits is taken to be like what had one: it is work for a window, too.
    fn class(&self, span: f64, waiting: usize, parts: Parts) -> Option<Class> {
        if self.closures == 0.0 {
            return None;
        }
        let mean = self.seconds / self.closures;
        let square = self.squares / self.closures;
        let variation = if mean > 0.0 { (square / (mean * mean) - 1.0).max(0.0) } else { 0.0 };
        let of_mean = |part: f64| Duration::from_secs_f64(mean * part);
        Some(Class {
            rate: (self.closures + waiting as f64) / span,
            cpu: of_mean(parts.cpu),
            wall: of_mean(1.0),
            ready: parts.ready.map(of_mean),
            blocks: true,
            variation,
        })
    }
}

/// Time between two looks at how many threads there are to be.
pub(super) const WINDOW: Duration = Duration::from_secs(5);
/// Threads that there may always be: until it is measured that some block for long, others are not held up by them.
const THREADS_MIN: usize = 4;

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_nanos(1_000_000_000) + Duration::from_millis(millis)
    }

    fn sizing() -> Sizing {
        let mut sizing = Sizing::new(2.0);
        sizing.begin(at(0));
        sizing
    }

    /// Windows in each of which so many closures end that have had their threads for so long.
    fn windows(
        sizing: &mut Sizing,
        count: u64,
        closures: u64,
        millis: u64,
        cpu: u64,
        ready: Option<u64>,
    ) -> Vec<usize> {
        let of = Duration::from_millis;
        let mut changes = Vec::new();
        for _ in 0..count {
            let now = sizing.began + WINDOW;
            let measured = Measured { wall: of(millis), cpu: of(cpu), ready: ready.map(of) };
            (0..closures).for_each(|_| sizing.ended(now - of(millis), now, measured));
            changes.extend(sizing.window(now, 0, iter::empty()));
        }
        changes
    }

    #[test]
    fn closures_that_wait_get_threads_and_those_that_compute_none_beyond_the_cores() {
        let mut waits = sizing();
        let changes = windows(&mut waits, 3, 5_000, 10, 0, Some(0));
        assert!(changes.len() == 1 && (11..=16).contains(&changes[0]), "ten are kept busy: {changes:?}");
        let mut computes = sizing();
        let changes = windows(&mut computes, 6, 5_000, 10, 10, Some(0));
        assert!(changes.is_empty(), "two cores keep no more than four busy: {changes:?}");
        let mut crowded = sizing();
        let changes = windows(&mut crowded, 6, 5_000, 10, 2, Some(8));
        assert!(changes.is_empty(), "what waits for a core gets none by another thread: {changes:?}");
        let mut unsaid = sizing();
        assert!(!windows(&mut unsaid, 3, 5_000, 10, 0, None).is_empty());
    }

    #[test]
    fn closures_that_never_end_are_measured_and_so_is_what_waits_behind_them() {
        let mut sizing = sizing();
        // Four have their threads from the beginning on, and eight wait.
        let changes: Vec<_> =
            (1..=3).filter_map(|window| sizing.window(at(window * 5_000), 8, [at(0); 4].into_iter())).collect();
        assert!(changes.len() == 1 && changes[0] >= 12, "each of twelve wants a thread: {changes:?}");
        let kept: Vec<_> =
            (4..=12).filter_map(|window| sizing.window(at(window * 5_000), 0, [at(0); 12].into_iter())).collect();
        assert!(kept.iter().all(|threads| *threads >= 12), "they go on: {kept:?}");
    }

    #[test]
    fn threads_go_one_at_a_time_when_nothing_comes() {
        let mut sizing = sizing();
        let most = windows(&mut sizing, 3, 5_000, 10, 0, Some(0))[0];
        let fewer = windows(&mut sizing, 100, 0, 0, 0, None);
        assert_eq!(fewer, (THREADS_MIN..most).rev().collect::<Vec<_>>());
    }
}
