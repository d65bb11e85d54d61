//! The state of a simulation that all its parts share.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::clock::Clock;
use crate::connection::{Connection, Item};
use crate::crashes::Trap;
use crate::executor::{self, Ready};
use crate::faults::Faults;
use crate::frame::{Classify, Narrate};
use crate::incarnation::Incarnation;
use crate::listener::Door;
use crate::random::{Random, mix};
use crate::trace::{Happening, Log, Trace};

/// One simulation. Its core is locked for moments only, and by one thread.
pub(crate) struct Shared {
    pub(crate) seed: u64,
    pub(crate) start: Instant,
    pub(crate) polls_max: u64,
    pub(crate) log: Log,
    pub(crate) ready: Arc<Ready>,
    /// Virtual nanoseconds of the earliest event: a copy of what the core's heap says, to look at without the lock.
    pub(crate) next_event: AtomicU64,
    /// Hash of the order in which tasks were polled.
    polls: AtomicU64,
    poll_count: AtomicU64,
    /// The first violation; `is_violated` is there to be looked at without the lock.
    pub(crate) violation: Mutex<Option<String>>,
    pub(crate) is_violated: AtomicBool,
    /// Whether the core has doomed nodes: to be looked at without the lock.
    has_doomed: AtomicBool,
    pub(crate) core: Mutex<Core>,
}

/// What the lock guards: machines, network, events to come.
pub(crate) struct Core {
    pub(crate) random: Random,
    pub(crate) faults: Faults,
    pub(crate) classify: Classify,
    pub(crate) narrator: Option<Box<dyn Narrate>>,
    pub(crate) trace: Trace,
    pub(crate) machines: Vec<Machine>,
    /// When all calendars began.
    pub(crate) calendars_began: Duration,
    pub(crate) numbers: BTreeMap<String, usize>,
    pub(crate) connections: BTreeMap<u64, Connection>,
    pub(crate) connections_made: u64,
    pub(crate) doors: BTreeMap<(usize, u16), Door>,
    /// Links, from and to, over which nothing passes.
    pub(crate) cuts: BTreeSet<(usize, usize)>,
    /// How much farther machines are from each other than others are.
    pub(crate) far: BTreeMap<(usize, usize), Duration>,
    /// How often the network was healed: a cut's consequences end with it.
    pub(crate) heals: u64,
    /// Crashes at messages to come.
    pub(crate) traps: Vec<Trap>,
    /// Nodes that have crashed while one of their own tasks ran, which keeps the others from being dropped at once.
    pub(crate) doomed: Vec<Arc<Incarnation>>,
    events: BinaryHeap<Scheduled>,
    scheduled: u64,
}

/// A computer with a name and a clock, on which incarnations of a node follow each other.
pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) clock: Clock,
    /// By how much its calendar is ahead.
    pub(crate) wall_ahead: Duration,
    pub(crate) incarnation: Option<Arc<Incarnation>>,
    pub(crate) incarnations: u32,
    /// While no incarnation lives: nothing answers, not even with a refusal.
    pub(crate) silent: bool,
    pub(crate) next_port: u16,
}

/// What happens at a point of virtual time without any task's doing.
pub(crate) enum Event {
    /// `item` comes out of the wire that `side` of a connection sends into.
    Deliver { connection: u64, side: usize, item: Item },
    /// What a cut held back comes through.
    Release { connection: u64, side: usize },
    /// `side` gives up a connection that crosses a cut, unless the network was healed meanwhile.
    GiveUp { connection: u64, side: usize, heals: u64 },
    /// The connection is reset because its time has come.
    LifeOver { connection: u64 },
    /// The whole run has taken too long.
    Deadline,
}

struct Scheduled {
    at: Duration,
    order: u64,
    event: Event,
}

impl Shared {
    pub(crate) fn new(seed: u64, core: Core, log: Log, polls_max: u64) -> Self {
        Self {
            seed,
            start: Instant::now(),
            polls_max,
            log,
            ready: Arc::default(),
            next_event: AtomicU64::new(core.next_event()),
            polls: AtomicU64::new(0),
            poll_count: AtomicU64::new(0),
            violation: Mutex::default(),
            is_violated: AtomicBool::new(false),
            has_doomed: AtomicBool::new(false),
            core: Mutex::new(core),
        }
    }

    /// Virtual time since the simulation began.
    pub(crate) fn now(&self) -> Duration {
        Instant::now().duration_since(self.start)
    }

    /// What calendars show that are not ahead.
    pub(crate) fn wall(&self) -> Duration {
        WALL_ORIGIN + self.now().saturating_sub(lock(&self.core).calendars_began)
    }

    /// Works on the core, at the present virtual time.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut Core, Duration) -> R) -> R {
        let now = self.now();
        let mut core = lock(&self.core);
        let result = work(&mut core, now);
        self.publish(&core);
        result
    }

    /// Lets the executor know when to look again.
    fn publish(&self, core: &Core) {
        let next = core.next_event();
        if self.next_event.swap(next, Ordering::Relaxed) > next {
            self.ready.wake_executor();
        }
        if !core.doomed.is_empty() {
            self.has_doomed.store(true, Ordering::Relaxed);
        }
    }

    /// Drops the tasks of the nodes that crashed in what has just run.
    pub(crate) fn bury(&self) {
        if self.has_doomed.swap(false, Ordering::Relaxed) {
            let doomed = std::mem::take(&mut lock(&self.core).doomed);
            doomed.iter().for_each(executor::kill);
        }
    }

    /// Makes the earliest event happen, if it is due.
    pub(crate) fn fire_next(&self, now: Duration) {
        let mut core = lock(&self.core);
        core.fire_next(now);
        self.publish(&core);
    }

    pub(crate) fn polled(&self, now: Duration, machine: Option<usize>, task: u64) {
        let hash = self.polls.load(Ordering::Relaxed);
        self.polls.store(mix(hash ^ task).wrapping_add(now.as_nanos() as u64), Ordering::Relaxed);
        self.poll_count.store(self.poll_count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        if self.log == Log::Full {
            lock(&self.core).trace.remember(now, Happening::Polled { machine, task });
        }
    }

    pub(crate) fn trace_hash(&self) -> u64 {
        lock(&self.core).trace.hash() ^ self.polls.load(Ordering::Relaxed)
    }

    /// # Panics
    /// If something was violated.
    pub(crate) fn check(&self) {
        if self.is_violated.load(Ordering::Relaxed)
            && let Some(what) = lock(&self.violation).take()
        {
            panic!("violated: {what}");
        }
    }

    /// Happenings and polls so far.
    pub(crate) fn events(&self) -> u64 {
        lock(&self.core).trace.count() + self.poll_count.load(Ordering::Relaxed)
    }
}

impl Core {
    pub(crate) fn new(mut random: Random, faults: Faults, classify: Classify, log: Log, deadline: Duration) -> Self {
        let mut core = Self {
            random: random.fork(),
            faults,
            classify,
            narrator: None,
            trace: Trace::new(log),
            machines: Vec::new(),
            calendars_began: Duration::ZERO,
            numbers: BTreeMap::new(),
            connections: BTreeMap::new(),
            connections_made: 0,
            doors: BTreeMap::new(),
            cuts: BTreeSet::new(),
            far: BTreeMap::new(),
            heals: 0,
            traps: Vec::new(),
            doomed: Vec::new(),
            events: BinaryHeap::new(),
            scheduled: 0,
        };
        core.schedule(deadline, Event::Deadline);
        core
    }

    pub(crate) fn schedule(&mut self, at: Duration, event: Event) {
        self.scheduled += 1;
        self.events.push(Scheduled { at, order: self.scheduled, event });
    }

    fn next_event(&self) -> u64 {
        self.events.peek().map_or(u64::MAX, |next| next.at.as_nanos() as u64)
    }

    fn fire_next(&mut self, now: Duration) {
        if self.events.peek().is_none_or(|next| next.at > now) {
            return;
        }
        let Some(next) = self.events.pop() else { return };
        match next.event {
            Event::Deliver { connection, side, item } => self.deliver(now, connection, side, item),
            Event::Release { connection, side } => self.release(now, connection, side),
            Event::GiveUp { connection, side, heals } => self.give_up(now, connection, side, heals),
            Event::LifeOver { connection } => {
                let side = self.random.index(2);
                self.reset_connection(now, connection, side);
            }
            Event::Deadline => {
                panic!("no end: the scenario still runs at virtual time {now:?}; raise the deadline if that is right")
            }
        }
    }

    /// The number of the machine called `name`, which is set up if it is new.
    pub(crate) fn machine(&mut self, name: &str) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.machines.len();
        self.machines.push(Machine {
            name: name.to_owned(),
            clock: Clock::seeded(&self.faults, &mut self.random),
            wall_ahead: Duration::ZERO,
            incarnation: None,
            incarnations: 0,
            silent: false,
            next_port: FIRST_PORT,
        });
        self.numbers.insert(name.to_owned(), number);
        self.trace.named(name.to_owned());
        number
    }

    pub(crate) fn record(&mut self, now: Duration, what: Happening) {
        self.trace.record(now, what);
    }
}

impl Machine {
    /// A port that no listener and no connection of this machine had for long.
    pub(crate) fn port(&mut self) -> u16 {
        let port = self.next_port;
        self.next_port = port.checked_add(1).unwrap_or(FIRST_PORT);
        port
    }
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    /// The earliest is the greatest: `BinaryHeap` pops that.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

/// Locks, also after a panic: a failed run still tells its trace.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ports given out begin here.
const FIRST_PORT: u16 = 40_000;

/// Where every simulation's calendar begins: Thursday, 1 January 2026, 00:00 UTC.
const WALL_ORIGIN: Duration = Duration::from_secs(1_767_225_600);
