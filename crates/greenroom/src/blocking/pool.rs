//! The pool of a node: closures wait in one queue, and threads that are started when they are needed take them in their order.

use std::any::Any;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use greenroom_world::{Timestamp, World};
use tokio::sync::oneshot;

use super::error::NotBegun;
use super::settings::{POOL_THREADS_MAX, PoolSize, Threads};
use super::sizing::{Measured, Sizing};

/// What a closure gives.
pub(super) type Value = Box<dyn Any + Send>;
/// A closure.
pub(super) type Work = Box<dyn FnOnce() -> Value + Send>;
/// What a closure has given, or what it has panicked with.
pub(super) type Ended = thread::Result<Value>;

/// The threads of a node for what blocks.
pub(super) struct Pool {
    len_max: usize,
    inner: Mutex<Inner>,
}

struct Inner {
    /// By their numbers, so that the first is the oldest, and one can be taken back.
    waiting: BTreeMap<u64, Job>,
    /// Since when each closure has its thread.
    running: BTreeMap<u64, Timestamp>,
    /// Threads that have nothing to do, the last one first.
    idle: Vec<(u64, Waker)>,
    /// Threads that there are.
    threads: usize,
    /// Threads that there may be now.
    threads_max: usize,
    last: u64,
    phase: Phase,
    /// `None` for a pool whose size is fixed.
    sizing: Option<Sizing>,
    counts: Counts,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing has come yet.
    Unused,
    Open,
    Closed,
}

struct Job {
    work: Work,
    answer: oneshot::Sender<Ended>,
    since: Timestamp,
}

/// What there is, and what has been since the node started.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) threads: usize,
    pub(super) threads_max: usize,
    pub(super) waiting: usize,
    /// Closures that have begun, and for how long these waited together.
    pub(super) begun: u64,
    pub(super) waited: Duration,
    pub(super) done: u64,
    /// Closures that never began: refused, or given up while they waited.
    pub(super) refused: u64,
}

/// A closure that was taken in.
pub(super) struct Taken {
    pub(super) number: u64,
    pub(super) answer: oneshot::Receiver<Ended>,
    /// Whether it is the first that came.
    pub(super) is_first: bool,
}

impl Pool {
    /// A pool that has no thread yet. One that is sized by what is measured may keep so many cores busy.
    pub(super) fn new(settings: &Threads, cores: f64) -> Self {
        let sizing = match settings.blocking {
            PoolSize::Auto => Some(Sizing::new(cores)),
            PoolSize::Fixed(_) => None,
        };
        let threads_max = match (settings.blocking, &sizing) {
            (PoolSize::Fixed(threads), _) => threads.clamp(1, POOL_THREADS_MAX),
            (_, sizing) => sizing.as_ref().map_or(1, Sizing::threads),
        };
        let inner = Inner {
            waiting: BTreeMap::new(),
            running: BTreeMap::new(),
            idle: Vec::new(),
            threads: 0,
            threads_max,
            last: 0,
            phase: Phase::Unused,
            sizing,
            counts: Counts::default(),
        };
        Self { len_max: settings.blocking_len_max.max(1), inner: Mutex::new(inner) }
    }

    /// Lets `work` run when a thread is free.
    pub(super) fn submit(self: &Arc<Self>, world: &Arc<dyn World>, work: Work) -> Result<Taken, NotBegun> {
        let (answer, receiver) = oneshot::channel();
        let since = world.now();
        let mut inner = self.lock();
        let waiting = inner.waiting.len();
        let refused = match inner.phase {
            Phase::Closed => Some(NotBegun::Stopping),
            _ if waiting >= self.len_max => {
                Some(NotBegun::Full { waiting: waiting as u64, threads: inner.threads_max as u64 })
            }
            _ => None,
        };
        if let Some(refused) = refused {
            inner.counts.refused += 1;
            drop(inner);
            return Err(refused);
        }
        let is_first = inner.phase == Phase::Unused;
        if is_first {
            inner.phase = Phase::Open;
            if let Some(sizing) = &mut inner.sizing {
                sizing.begin(since);
            }
        }
        inner.last += 1;
        let number = inner.last;
        inner.waiting.insert(number, Job { work, answer, since });
        let idle = inner.idle.pop();
        let starts = idle.is_none() && inner.threads < inner.threads_max;
        inner.threads += usize::from(starts);
        drop(inner);
        if let Some((_, waker)) = idle {
            waker.wake();
        }
        if starts {
            self.start(world).or_else(|error| self.go_without(number, &error.to_string()))?;
        }
        Ok(Taken { number, answer: receiver, is_first })
    }

    /// Takes a closure back that waits, if it has not begun; whether it was so.
    pub(super) fn withdraw(&self, number: u64) -> bool {
        let mut inner = self.lock();
        let job = inner.waiting.remove(&number);
        inner.counts.refused += u64::from(job.is_some());
        drop(inner);
        // Only now: what the closure holds may do anything when it is dropped.
        job.is_some()
    }

    /// Counts a closure that did not come so far.
    pub(super) fn refuse(&self) {
        self.lock().counts.refused += 1;
    }

    /// Ends a window of the sizing, and lets the pool have as many threads as follow from it.
    pub(super) fn window(self: &Arc<Self>, world: &Arc<dyn World>, now: Timestamp) {
        let mut inner = self.lock();
        let Inner { sizing, waiting, running, .. } = &mut *inner;
        let changed = sizing.as_mut().and_then(|sizing| {
            let threads = sizing.window(now, waiting.len(), running.values().copied())?;
            Some((threads, sizing.why().to_string()))
        });
        let Some((threads, why)) = changed else { return };
        inner.threads_max = threads;
        let more = inner.waiting.len().min(threads.saturating_sub(inner.threads));
        inner.threads += more;
        // Of those that have nothing to do, the ones that are too many end.
        let idle = std::mem::take(&mut inner.idle);
        drop(inner);
        tracing::info!(threads, why, "the pool for what blocks has another size");
        idle.into_iter().for_each(|(_, waker)| waker.wake());
        for _ in 0..more {
            if let Err(error) = self.start(world) {
                tracing::warn!(%error, "no thread could be started for what blocks");
                self.lock().threads -= 1;
            }
        }
    }

    /// Runs nothing more, and ends the threads: those that run a closure, after it.
    pub(super) fn close(&self) {
        let mut inner = self.lock();
        inner.phase = Phase::Closed;
        let waiting = std::mem::take(&mut inner.waiting);
        inner.counts.refused += waiting.len() as u64;
        let idle = std::mem::take(&mut inner.idle);
        drop(inner);
        drop(waiting);
        idle.into_iter().for_each(|(_, waker)| waker.wake());
    }

    pub(super) fn counts(&self) -> Counts {
        let inner = self.lock();
        let Inner { threads, threads_max, .. } = *inner;
        Counts { threads, threads_max, waiting: inner.waiting.len(), ..inner.counts }
    }

    /// Why it has its size, if that follows from what is measured.
    pub(super) fn why(&self) -> Option<String> {
        self.lock().sizing.as_ref().map(|sizing| sizing.why().to_string())
    }

    /// Whether its size follows from what is measured.
    pub(super) fn is_sized(&self) -> bool {
        self.lock().sizing.is_some()
    }

    /// Starts a thread that is counted already.
    fn start(self: &Arc<Self>, world: &Arc<dyn World>) -> std::io::Result<()> {
        let worker = {
            let mut inner = self.lock();
            inner.last += 1;
            inner.last
        };
        let (pool, on) = (self.clone(), world.clone());
        let body = Box::new(move || Box::pin(pool.work(worker, on)) as _);
        world.start_blocking(THREAD_NAME.to_owned(), body)
    }

    /// Goes on without a thread that was counted and could not be started, with those that there are.
    fn go_without(&self, number: u64, reason: &str) -> Result<(), NotBegun> {
        let threads = {
            let mut inner = self.lock();
            inner.threads -= 1;
            inner.threads
        };
        tracing::warn!(reason, threads, "no thread could be started for what blocks");
        if threads == 0 && self.withdraw(number) {
            return Err(NotBegun::NoThread { reason: reason.to_owned() });
        }
        Ok(())
    }

    /// The life of a thread.
    async fn work(self: Arc<Self>, worker: u64, world: Arc<dyn World>) {
        while let Some((number, job)) = poll_fn(|context| self.next(worker, &*world, context.waker())).await {
            self.run(number, job, &*world);
        }
    }

    /// What the thread is to run next; `None` if it is to end.
    fn next(&self, worker: u64, world: &dyn World, waker: &Waker) -> Poll<Option<(u64, Job)>> {
        let mut inner = self.lock();
        inner.idle.retain(|(idle, _)| *idle != worker);
        if let Some((number, job)) = inner.waiting.pop_first() {
            let now = world.now();
            inner.running.insert(number, now);
            inner.counts.begun += 1;
            inner.counts.waited += now.since(job.since);
            return Poll::Ready(Some((number, job)));
        }
        // Only while nothing waits: no closure is left to threads that sleep.
        if inner.phase == Phase::Closed || inner.threads > inner.threads_max {
            inner.threads -= 1;
            return Poll::Ready(None);
        }
        inner.idle.push((worker, waker.clone()));
        Poll::Pending
    }

    fn run(&self, number: u64, Job { work, answer, .. }: Job, world: &dyn World) {
        let before = (world.thread_time(), world.thread_ready());
        let ended = catch_unwind(AssertUnwindSafe(work));
        let spent = |after: Option<Duration>, before: Option<Duration>| Some(after?.saturating_sub(before?));
        let cpu = spent(world.thread_time(), before.0).unwrap_or_default();
        let ready = spent(world.thread_ready(), before.1);
        {
            let now = world.now();
            let mut inner = self.lock();
            let began = inner.running.remove(&number).unwrap_or(now);
            inner.counts.done += 1;
            if let Some(sizing) = &mut inner.sizing {
                sizing.ended(began, now, Measured { wall: now.since(began), cpu, ready });
            }
        }
        // If nobody waits any more, what it has given is dropped here, and may panic as well.
        drop(catch_unwind(AssertUnwindSafe(|| drop(answer.send(ended)))));
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How the threads are called: what the system shows of a name is 15 letters.
const THREAD_NAME: &str = "greenroom-block";
