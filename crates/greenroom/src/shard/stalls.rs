//! Turns that keep their shard from all others: they wait where nothing can be awaited, or compute for long.
//!
//! Nobody looks for them until a round of the shard has taken long. From then on, for a while, some polls are timed, a
//! few hundred a second: by how long they took, how long the thread had a core meanwhile, and how long it waited for one.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use greenroom_world::{Timestamp, World};

use super::Shard;
use super::turns::Frame;
use crate::observe::events::Happened;

/// Which polls of a shard are timed.
#[derive(Default)]
pub(super) struct Watch {
    /// Polls to the next one that is timed, that one counted; 0 while nobody looks.
    left: Cell<u32>,
    /// One poll in so many is timed.
    stride: Cell<u32>,
    until: Cell<Timestamp>,
    /// When the last one was timed.
    last: Cell<Timestamp>,
    /// What the polls took that were begun within the one that is timed; `None` if none is.
    within: Cell<Option<Taken>>,
}

impl Watch {
    /// Whether the poll that begins is to be timed.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        match self.left.get() {
            0 => false,
            1 => true,
            left => {
                self.left.set(left - 1);
                false
            }
        }
    }

    /// A round began then, and is over.
    #[inline]
    pub(super) fn round(&self, began: Timestamp, now: Timestamp) {
        if now.since(began) >= LONG_ROUND {
            self.until.set(now + LOOKS_FOR);
            if self.left.get() == 0 {
                self.left.set(1);
                self.stride.set(1);
            }
        }
    }

    /// A poll was timed: which one is next.
    fn next(&self, now: Timestamp, draw: u64) {
        if now >= self.until.get() {
            return self.left.set(0);
        }
        let passed = now.since(self.last.replace(now));
        let stride = self.stride.get();
        let stride = match passed {
            _ if passed < TIMED_EVERY / 2 => stride.saturating_mul(2).min(STRIDE_MAX),
            _ if passed > TIMED_EVERY * 2 => (stride / 2).max(1),
            _ => stride,
        };
        self.stride.set(stride);
        // A gap of its own, so that no rhythm of turns meets one of this.
        self.left.set(1 + (draw % u64::from(2 * stride - 1)) as u32);
    }
}

/// What a poll has taken of its shard.
#[derive(Clone, Copy, Default)]
struct Taken {
    /// Time in which the thread had something to wait for.
    waited: Duration,
    /// Time that it had a core.
    computed: Duration,
}

/// What the clocks of a thread say.
struct Clocks {
    now: Timestamp,
    on_core: Duration,
    ready: Duration,
    sleeps: u64,
}

impl Clocks {
    /// `None` where the world does not know.
    fn read(world: &dyn World) -> Option<Self> {
        let (on_core, sleeps) = (world.thread_time()?, world.thread_sleeps()?);
        let ready = world.thread_ready().unwrap_or_default();
        Some(Self { now: world.now(), on_core, ready, sleeps })
    }

    fn since(&self, begun: &Self) -> Taken {
        let computed = self.on_core.saturating_sub(begun.on_core);
        let ready = self.ready.saturating_sub(begun.ready);
        let waited = match self.sleeps == begun.sleeps {
            // Its core was taken away, be it by those who share the machine.
            true => Duration::ZERO,
            false => self.now.since(begun.now).saturating_sub(computed + ready),
        };
        Taken { waited, computed }
    }
}

impl Shard {
    /// Polls a turn by the clocks.
    #[cold]
    pub(super) fn timed<T>(&self, frame: &Frame, poll: impl FnOnce() -> T) -> T {
        let (watch, world) = (&self.watch, self.port.node.world());
        let Some(begun) = Clocks::read(&**world) else {
            watch.left.set(0);
            return poll();
        };
        // What is timed is one turn: no other one follows in its frame.
        frame.more.set(0);
        // Polls that are begun within this one are timed, too: they are none of its own.
        let above = watch.within.replace(Some(Taken::default()));
        watch.left.set(1);
        let polled = poll();
        let within = watch.within.replace(None).unwrap_or_default();
        let Some(all) = Clocks::read(&**world).map(|ended| (ended.now, ended.since(&begun))) else { return polled };
        let (now, all) = all;
        let own = Taken {
            waited: all.waited.saturating_sub(within.waited),
            computed: all.computed.saturating_sub(within.computed),
        };
        let times = watch.stride.get();
        let id = frame.activation.id();
        // What is done here of a turn in a host is the node's own, and nothing that its author could do otherwise.
        let is_his = || !self.port.node.kinds().is_foreign(id.kind);
        if (own.waited >= WAITED_MIN || own.computed >= COMPUTED_MIN) && is_his() {
            let method = || frame.activation.method_name(frame.job.get().method);
            let of = (id.kind.name(), frame.job.get().method);
            if let Some(habit) = self.gauges().stalls().note(of, method, own, times) {
                self.port.node.happened(habit.happened(of.0));
            }
        }
        match above {
            Some(sum) => {
                let (waited, computed) = (sum.waited + all.waited, sum.computed + all.computed);
                watch.within.set(Some(Taken { waited, computed }));
            }
            None => watch.next(now, world.random()),
        }
        polled
    }
}

/// The methods of a shard's actors that have kept it from others.
#[derive(Default, Debug)]
pub(crate) struct Stalls(Mutex<BTreeMap<(&'static str, u16), Stall>>);

/// How a method has kept its shard from others.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Stall {
    pub(crate) method: String,
    /// How often, by the polls that were timed.
    pub(crate) times: u64,
    /// For how long together.
    pub(crate) waited: Duration,
    pub(crate) computed: Duration,
}

impl Stalls {
    fn all(&self) -> MutexGuard<'_, BTreeMap<(&'static str, u16), Stall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A poll has taken so much, and stands for so many. Says so in the log, and to who calls, when it becomes a habit.
    fn note(
        &self,
        of: (&'static str, u16),
        method: impl FnOnce() -> String,
        taken: Taken,
        stands_for: u32,
    ) -> Option<Stall> {
        let mut all = self.all();
        if all.len() >= STALLS_MAX && !all.contains_key(&of) {
            return None;
        }
        let stall = all.entry(of).or_insert_with(|| Stall { method: method(), ..Stall::default() });
        let before = stall.times;
        stall.times += u64::from(stands_for);
        stall.waited += taken.waited * stands_for;
        stall.computed += taken.computed * stands_for;
        if before < HABIT && stall.times >= HABIT {
            let method = format!("{}.{}", of.0, stall.method);
            let (does, each) = (stall.does(), stall.each());
            tracing::warn!(
                %method,
                "a method keeps its shard from all other actors: it {does} for {each:?} without an await; `#[blocking]` before it, or `cx.blocking`, gives it a thread"
            );
            return Some(stall.clone());
        }
        None
    }

    /// What has become a habit so far, by kind.
    pub(crate) fn seen(&self) -> Vec<(&'static str, Stall)> {
        let all = self.all();
        let habits = all.iter().filter(|(_, stall)| stall.times >= HABIT);
        habits.map(|((kind, _), stall)| (*kind, stall.clone())).collect()
    }
}

impl Stall {
    /// The same method has done so on another shard.
    pub(crate) fn add(&mut self, other: &Self) {
        self.times += other.times;
        self.waited += other.waited;
        self.computed += other.computed;
    }

    /// Whether it waits for most of that time.
    pub(crate) fn waits(&self) -> bool {
        self.waited >= self.computed
    }

    /// The same in a word.
    fn does(&self) -> &'static str {
        if self.waits() { "waits" } else { "computes" }
    }

    fn happened(self, kind: &str) -> Happened {
        let (how, each) = (self.does(), self.each());
        Happened::Stalls { kind: kind.to_owned(), method: self.method, how, each }
    }

    /// For how long each time.
    pub(crate) fn each(&self) -> Duration {
        (self.waited + self.computed) / u32::try_from(self.times).unwrap_or(u32::MAX).max(1)
    }
}

/// A round that takes so long lets the shard look for who did it.
const LONG_ROUND: Duration = Duration::from_micros(200);
/// For so long it looks on behind the last such round.
const LOOKS_FOR: Duration = Duration::from_secs(10);
/// About so often it times a poll: that costs some three microseconds.
const TIMED_EVERY: Duration = Duration::from_millis(5);
const STRIDE_MAX: u32 = 1 << 20;
/// A poll that waits for so long has blocked its shard.
const WAITED_MIN: Duration = Duration::from_micros(200);
/// A poll that computes for so long keeps others waiting as much.
const COMPUTED_MIN: Duration = Duration::from_millis(1);
/// Methods that are remembered.
const STALLS_MAX: usize = 64;
/// Times that are no accident.
const HABIT: u64 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn who_has_only_lost_its_core_has_waited_for_nothing() {
        let at = |millis: u64, sleeps| Clocks {
            now: Timestamp::from_nanos(millis * 1_000_000),
            on_core: MS * (millis / 4) as u32,
            ready: Duration::ZERO,
            sleeps,
        };
        let taken = at(8, 3).since(&at(0, 3));
        assert_eq!((taken.waited, taken.computed), (Duration::ZERO, 2 * MS));
        let taken = at(8, 4).since(&at(0, 3));
        assert_eq!((taken.waited, taken.computed), (6 * MS, 2 * MS));
        let ready = Clocks { ready: 5 * MS, ..at(8, 4) };
        assert_eq!(ready.since(&at(0, 3)).waited, MS, "it was ready for the rest, and had no core");
    }

    #[test]
    fn a_method_is_named_once_it_has_become_a_habit() {
        let stalls = Stalls::default();
        let taken = Taken { waited: 3 * MS, computed: MS };
        for times in 1..5_u64 {
            let told = stalls.note(("letter", 2), || "seal".to_owned(), taken, 1);
            assert_eq!(told.is_some(), times == HABIT, "once");
            assert_eq!(stalls.seen().len(), usize::from(times >= HABIT), "{times} times");
        }
        let [(kind, stall)] = &stalls.seen()[..] else { panic!("one method") };
        assert_eq!(
            (*kind, &*stall.method, stall.times, stall.waits(), stall.each()),
            ("letter", "seal", 4, true, 4 * MS)
        );
        for method in 0..100 {
            (0..3).for_each(|_| drop(stalls.note(("note", method), String::new, taken, 1)));
        }
        assert_eq!(stalls.seen().len(), STALLS_MAX);
    }
}
