//! Load shedding: how much of the new work a shard turns away, so that what it takes on ends in time.
//!
//! After CoDel (Nichols & Jacobson, ACM Queue 2012): not a queue's length counts but the least time that anything waited
//! over an interval, as a short queue of slow work is long, and a burst is none. Once that is over the target, the share of
//! new outside calls that are turned away follows it, after PIE (RFC 8033): by how fast the wait grows, which says how much
//! more is taken on than can be done, and by how far it is from half of the target; in parts of what is taken on, so that a
//! step is small beside what can be done however much more comes. When all outside calls are turned away, calls between
//! actors follow that could not end in time anyway. Replies and what nodes tell each other are never turned away: they end
//! work.
//!
//! Pure: no clock, no randomness. Of the calls that come, every so many-th is turned away.

use std::time::Duration;

use crate::time::Timestamp;

/// When a shard has too much to do.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// Time for which work may wait.
    pub target: Duration,
    /// Time over which the least wait counts; 100 ms as in CoDel.
    pub interval: Duration,
    /// Busy time of the shard's thread, in thousandths, from which on a wait over a quarter of the target is too long;
    /// over 1000 if it is to be ignored.
    pub busy_max: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { target: Duration::from_secs(1), interval: Duration::from_millis(100), busy_max: 950 }
    }
}

/// Where a call comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Outside of all actors: somebody may come back later.
    Outside,
    /// Another actor, which waits for so much longer.
    Inside {
        /// What is left of its time.
        left: Duration,
    },
    /// A reply, or what nodes tell each other.
    System,
}

/// What one shard turns away.
#[derive(Clone, Debug)]
pub struct Shedder {
    config: Config,
    since: Timestamp,
    /// The least wait of the interval; `None` if nothing waited at some time in it.
    least: Option<Duration>,
    /// That of the interval before.
    wait: Duration,
    busy: u32,
    /// Millionths of outside calls that are taken on.
    admitted: i64,
}

/// What is turned away, until it changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Level {
    /// Thousandths of the outside calls.
    pub share: u32,
    /// How long work waits.
    pub wait: Duration,
}

impl Level {
    /// Whether the call is taken on that is the `number`th to ask.
    pub fn admits(&self, class: Class, number: u64) -> bool {
        let (share, all) = (u64::from(self.share), u64::from(ALL));
        match class {
            Class::System => true,
            Class::Outside => (number % all) * share / all == (number % all + 1) * share / all,
            Class::Inside { left } => self.share < ALL || left >= self.wait,
        }
    }
}

impl Shedder {
    /// A shard that has nothing to do.
    pub fn new(config: Config, now: Timestamp) -> Self {
        Self { config, since: now, least: None, wait: Duration::ZERO, busy: 0, admitted: WHOLE }
    }

    /// What has waited longest has waited for `wait` now. Whether what is turned away may have changed.
    ///
    /// `busy` gives the busy time of the thread since it was last asked, in thousandths: it is asked once an interval.
    pub fn waited(&mut self, now: Timestamp, wait: Duration, busy: impl FnOnce(Duration) -> u32) -> bool {
        self.least = Some(self.least.map_or(wait, |least| least.min(wait)));
        let passed = now.since(self.since);
        if passed < self.config.interval {
            return false;
        }
        self.since = now;
        let last = std::mem::replace(&mut self.wait, self.least.take().unwrap_or_default());
        self.busy = busy(passed);
        let Config { target, busy_max, .. } = self.config;
        let bearable = if self.busy < busy_max { target } else { target / 4 };
        let before = self.share();
        if self.admitted < WHOLE || self.wait > bearable {
            self.admitted = (self.admitted - self.excess(last)).clamp(0, WHOLE);
        }
        before != self.share()
    }

    /// How much of what is taken on is too much, in millionths of all; less than nothing if more could be done.
    fn excess(&self, last: Duration) -> i64 {
        let goal = nanos(self.config.target / 2);
        let (wait, last) = (nanos(self.wait), nanos(last));
        let growth = (wait - last) * 500 / nanos(self.config.interval).max(1);
        let distance = (wait - goal) * 50 / goal.max(1);
        let part = (growth + distance).clamp(-STEP_MAX, STEP_MAX);
        let excess = self.admitted * part / 1000;
        match wait < goal {
            true if part <= 0 => excess.min(-STEP_MIN),
            false if part >= 0 => excess.max(STEP_MIN),
            _ => excess,
        }
    }

    /// Thousandths of the outside calls that are turned away.
    pub fn share(&self) -> u32 {
        ALL - u32::try_from(self.admitted * i64::from(ALL) / WHOLE).unwrap_or(ALL)
    }

    /// The least wait of the last interval.
    pub fn wait(&self) -> Duration {
        self.wait
    }

    /// Busy time of the thread over the last interval, in thousandths.
    pub fn busy(&self) -> u32 {
        self.busy
    }

    /// What is turned away now.
    pub fn level(&self) -> Level {
        Level { share: self.share(), wait: self.wait }
    }

    /// How long this is likely to last: what waits now must be done, and the share must shrink again.
    pub fn retry_after(&self) -> Duration {
        let mut idle = Self { wait: Duration::ZERO, ..self.clone() };
        let mut intervals = 0;
        while idle.admitted < WHOLE {
            idle.admitted -= idle.excess(Duration::ZERO);
            intervals += 1;
        }
        (self.wait + self.config.interval * intervals).clamp(RETRY_MIN, RETRY_MAX)
    }
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX / 1000).min(i64::MAX / 1000)
}

/// All outside calls, in thousandths.
pub const ALL: u32 = 1000;
/// All outside calls, in millionths.
const WHOLE: i64 = 1_000_000;
/// The part of what is taken on that is given up or taken back an interval, in thousandths, at most.
const STEP_MAX: i64 = 200;
/// What is given up or taken back an interval, in millionths of all, at least.
const STEP_MIN: i64 = 5_000;
const RETRY_MIN: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::mix;

    const CONFIG: Config =
        Config { target: Duration::from_millis(100), interval: Duration::from_millis(100), busy_max: 950 };

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_nanos(millis * 1_000_000)
    }

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// The shedder after so many intervals in which everything waited for `wait`, from `begin` on.
    fn after(mut shedder: Shedder, begin: u64, intervals: u64, wait: u64, busy: u32) -> Shedder {
        for round in 1..=intervals * 10 {
            shedder.waited(at(begin + round * 10), millis(wait), |_| busy);
        }
        shedder
    }

    #[test]
    fn a_burst_is_not_shed() {
        let mut shedder = Shedder::new(CONFIG, at(0));
        for round in 0..100 {
            // Long waits, with one short one an interval.
            let wait = if round % 9 == 0 { 0 } else { 5_000 };
            shedder.waited(at(round * 10), millis(wait), |_| 1000);
            assert_eq!(shedder.share(), 0);
        }
    }

    #[test]
    fn a_standing_queue_is_shed_more_and_more_and_then_less_and_less() {
        let mut shedder = Shedder::new(CONFIG, at(0));
        for round in 0..4 {
            let before = shedder.share();
            shedder = after(shedder, round * 100, 1, 150, 0);
            assert!(shedder.share() > before);
        }
        shedder = after(shedder, 400, 1, 50, 0);
        let held = after(shedder, 500, 1, 50, 0);
        assert!(held.share() > 0, "half of the target is where it stays");
        let intervals = held.retry_after().as_millis() / 100;
        let healed = after(held, 600, u64::try_from(intervals).unwrap(), 0, 0);
        assert_eq!(healed.share(), 0, "a refused caller is told how long that takes");
    }

    #[test]
    fn a_busy_thread_sheds_earlier_and_a_busy_thread_alone_does_not() {
        assert!(after(Shedder::new(CONFIG, at(0)), 0, 4, 30, 1000).share() > 0);
        assert_eq!(after(Shedder::new(CONFIG, at(0)), 0, 4, 30, 500).share(), 0);
        assert_eq!(after(Shedder::new(CONFIG, at(0)), 0, 4, 0, 1000).share(), 0, "it is busy, and nobody waits");
    }

    #[test]
    fn outside_calls_go_first_then_those_that_could_not_end_in_time_and_replies_never() {
        let some = after(Shedder::new(CONFIG, at(0)), 0, 3, 300, 0);
        let admitted = (7..1007).filter(|number| some.level().admits(Class::Outside, *number)).count();
        assert_eq!(admitted, (ALL - some.share()) as usize);
        assert!((100..900).contains(&admitted));
        assert!(some.level().admits(Class::Inside { left: millis(1) }, 0));
        let all = after(some, 300, 40, 300, 0).level();
        assert!(!(0..1000).any(|number| all.admits(Class::Outside, number)));
        assert!(!all.admits(Class::Inside { left: millis(299) }, 0));
        assert!(all.admits(Class::Inside { left: millis(300) }, 0));
        assert!(all.admits(Class::System, 0));
    }

    /// A queue with a fixed capacity under random load of up to five times that: what is admitted waits for little more than
    /// the target, at most a twentieth is turned away that could have been done, and nothing once the load is over.
    #[test]
    fn whatever_the_load_the_wait_comes_back_to_the_target_and_little_capacity_is_lost() {
        for seed in 0..200_u64 {
            let mut dice = seed;
            let mut random = |max: u64| {
                dice = mix(dice.wrapping_add(0x9E37_79B9));
                dice % max
            };
            let (mut shedder, mut queue, mut done) = (Shedder::new(CONFIG, at(0)), 0_u64, 0_u64);
            let mut busy = 0_u64;
            // Ten a tick of 10 ms can be done; up to fifty come.
            let (load, mut idle, mut asked) = (11 + random(40), 0, 0);
            for tick in 0..6_000 {
                let came = random(2 * load + 1);
                let level = shedder.level();
                queue += (asked..asked + came).filter(|number| level.admits(Class::Outside, *number)).count() as u64;
                asked += came;
                let now = queue.min(10);
                idle += 10 - now;
                done += now;
                queue -= now;
                busy = (busy * 9 + now * 100) / 10;
                shedder.waited(at(tick * 10), millis(queue), |_| u32::try_from(busy).unwrap_or(1000));
                if tick > 1_000 {
                    assert!(queue < 1_000, "seed {seed}: {queue} ms of work wait at tick {tick}");
                }
            }
            assert!(idle * 20 < done, "seed {seed}: of {done} that were done, {idle} more could have been");
            for tick in 6_000..7_000 {
                queue = queue.saturating_sub(10);
                shedder.waited(at(tick * 10), millis(queue), |_| 0);
            }
            assert_eq!((shedder.share(), shedder.level().admits(Class::Outside, 999)), (0, true), "seed {seed}");
        }
    }
}
