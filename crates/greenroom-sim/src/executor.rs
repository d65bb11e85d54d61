//! Polls the tasks of all nodes on one thread, in an order that the seed decides.
//!
//! Tasks live in a table of the thread, not in the shared state: a shard's task may not leave its thread. One tokio
//! `block_on` drives them all, so that tokio's paused clock advances when, and only when, no task can run.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use greenroom_world::LocalFuture;

use crate::incarnation::Incarnation;
use crate::shared::{Shared, lock};

/// The tasks that were woken and not polled since.
#[derive(Default)]
pub(crate) struct Ready(Mutex<ReadyTasks>);

#[derive(Default)]
struct ReadyTasks {
    tasks: Vec<TaskId>,
    /// The executor's own waker, present while it waits.
    idle: Option<Waker>,
}

impl Ready {
    fn push(&self, task: TaskId) {
        let mut ready = lock(&self.0);
        ready.tasks.push(task);
        if let Some(waker) = ready.idle.take() {
            waker.wake();
        }
    }

    pub(crate) fn wake_executor(&self) {
        if let Some(waker) = lock(&self.0).idle.take() {
            waker.wake();
        }
    }
}

/// A slot of the table and how often it was used before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct TaskId {
    slot: u32,
    generation: u32,
}

struct TaskWaker {
    task: TaskId,
    queued: AtomicBool,
    ready: Arc<Ready>,
}

impl TaskWaker {
    fn queue(&self) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            self.ready.push(self.task);
        }
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.queue();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.queue();
    }
}

#[derive(Default)]
struct Table {
    open: bool,
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    task: Option<Task>,
}

struct Task {
    name: Arc<str>,
    /// `None`: the scenario's own.
    owner: Option<Arc<Incarnation>>,
    waker: Arc<TaskWaker>,
    /// Absent while it is polled.
    future: Option<LocalFuture>,
}

thread_local! {
    static TABLE: RefCell<Table> = RefCell::default();
}

/// Adds a task, to be polled soon. Drops it when its owner is dead or no simulation runs on this thread (any more).
pub(crate) fn spawn(shared: &Shared, owner: Option<Arc<Incarnation>>, name: &str, future: LocalFuture) {
    let dead = owner.as_ref().is_some_and(|owner| owner.is_dead());
    let refused = TABLE.with_borrow_mut(|table| {
        if dead || !table.open {
            return Some(future);
        }
        let slot = table.free.pop().unwrap_or_else(|| {
            table.slots.push(Slot::default());
            (table.slots.len() - 1) as u32
        });
        let at = &mut table.slots[slot as usize];
        let task = TaskId { slot, generation: at.generation };
        let waker = Arc::new(TaskWaker { task, queued: AtomicBool::new(false), ready: shared.ready.clone() });
        waker.queue();
        at.task = Some(Task { name: name.into(), owner, waker, future: Some(future) });
        None
    });
    drop(refused);
}

/// Drops all tasks of `owner` now; one that is being polled, as soon as it returns.
pub(crate) fn kill(owner: &Arc<Incarnation>) {
    let killed = TABLE.with_borrow_mut(|table| {
        table.take(|task| task.owner.as_ref().is_some_and(|theirs| Arc::ptr_eq(theirs, owner)))
    });
    drop(killed);
}

/// Wakes all tasks of `owner`.
pub(crate) fn wake_all(owner: &Arc<Incarnation>) {
    TABLE.with_borrow(|table| {
        for task in table.slots.iter().filter_map(|slot| slot.task.as_ref()) {
            if task.owner.as_ref().is_some_and(|theirs| Arc::ptr_eq(theirs, owner)) {
                task.waker.queued.store(true, Ordering::Relaxed);
                task.waker.ready.push(task.waker.task);
            }
        }
    });
}

impl Table {
    fn take(&mut self, mut which: impl FnMut(&Task) -> bool) -> Vec<Task> {
        let mut taken = Vec::new();
        for (index, slot) in self.slots.iter_mut().enumerate() {
            if let Some(task) = slot.task.take_if(|task| which(task)) {
                slot.generation += 1;
                self.free.push(index as u32);
                taken.push(task);
            }
        }
        taken
    }

    fn begin_poll(&mut self, id: TaskId) -> Option<(LocalFuture, Arc<TaskWaker>, Option<usize>)> {
        let slot = &mut self.slots[id.slot as usize];
        let task = slot.task.as_mut().filter(|_| slot.generation == id.generation)?;
        // A paused node's task stays marked as queued: no wake-up adds it again until `wake_all` does.
        if task.owner.as_ref().is_some_and(|owner| owner.is_paused()) {
            return None;
        }
        task.waker.queued.store(false, Ordering::Relaxed);
        let future = task.future.take()?;
        Some((future, task.waker.clone(), task.owner.as_ref().map(|owner| owner.machine)))
    }

    /// Puts a pending future back; gives it to the caller to drop when its task was killed meanwhile.
    fn end_poll(&mut self, id: TaskId, future: LocalFuture, done: bool) -> (Option<LocalFuture>, Option<Task>) {
        let slot = &mut self.slots[id.slot as usize];
        if slot.generation != id.generation {
            return (Some(future), None);
        }
        if done {
            slot.generation += 1;
            self.free.push(id.slot);
            return (Some(future), slot.task.take());
        }
        if let Some(task) = slot.task.as_mut() {
            task.future = Some(future);
        }
        (None, None)
    }

    fn describe(&self, id: TaskId) -> String {
        let task = self.slots.get(id.slot as usize).and_then(|slot| slot.task.as_ref());
        task.map_or_else(|| "a task that has ended".into(), |task| task.name.to_string())
    }
}

/// Opens the thread's table; on drop, drops what is left in it.
pub(crate) struct Open(());

impl Open {
    pub(crate) fn table() -> Self {
        TABLE.with_borrow_mut(|table| {
            assert!(!table.open, "a simulation runs on this thread already");
            *table = Table { open: true, ..Table::default() };
        });
        Self(())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let left = TABLE.with_borrow_mut(|table| {
            table.open = false;
            table.take(|_| true)
        });
        drop(left);
    }
}

/// Runs tasks and events until `done` is set.
pub(crate) async fn drive(shared: Arc<Shared>, done: &Cell<bool>) {
    let mut sleep = std::pin::pin!(tokio::time::sleep_until(shared.start));
    let mut random = lock(&shared.core).random.fork();
    let mut batch: Vec<TaskId> = Vec::new();
    let mut guard = BusyGuard::default();
    std::future::poll_fn(move |cx| {
        let now = shared.now();
        loop {
            if done.get() {
                // Whoever drives on polls them.
                lock(&shared.ready.0).tasks.append(&mut batch);
                return Poll::Ready(());
            }
            let due = shared.next_event.load(Ordering::Relaxed) <= now.as_nanos() as u64;
            batch.append(&mut lock(&shared.ready.0).tasks);
            if due && (batch.is_empty() || random.bits() & 1 == 0) {
                shared.fire_next(now);
                shared.bury();
            } else if !batch.is_empty() {
                let id = batch.swap_remove(random.index(batch.len()));
                poll_task(id, &shared, &mut guard, now);
            } else {
                let next = shared.next_event.load(Ordering::Relaxed);
                sleep.as_mut().reset(shared.start + std::time::Duration::from_nanos(next.min(FAR)));
                if sleep.as_mut().poll(cx).is_ready() {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                lock(&shared.ready.0).idle = Some(cx.waker().clone());
                return Poll::Pending;
            }
            if !tokio::task::coop::has_budget_remaining() {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    })
    .await
}

fn poll_task(id: TaskId, shared: &Shared, guard: &mut BusyGuard, now: std::time::Duration) {
    let Some((mut future, waker, machine)) = TABLE.with_borrow_mut(|table| table.begin_poll(id)) else { return };
    guard.count(now, id, shared);
    shared.polled(now, machine, u64::from(id.slot) << 32 | u64::from(id.generation));
    let waker = Waker::from(waker);
    let done = future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
    let ended = TABLE.with_borrow_mut(|table| table.end_poll(id, future, done));
    drop(ended);
    shared.bury();
    shared.check();
}

/// Finds tasks that run on and on while no time passes.
#[derive(Default)]
struct BusyGuard {
    instant: std::time::Duration,
    polls: u64,
}

impl BusyGuard {
    fn count(&mut self, now: std::time::Duration, id: TaskId, shared: &Shared) {
        if mem::replace(&mut self.instant, now) != now {
            self.polls = 0;
        }
        self.polls += 1;
        if self.polls > shared.polls_max {
            let task = TABLE.with_borrow(|table| table.describe(id));
            panic!("no progress: {} polls at virtual time {now:?} and no time passes; last was {task}", self.polls);
        }
    }
}

/// Stands for "no event": ten years, which tokio's clock can still represent.
const FAR: u64 = 10 * 365 * 24 * 3600 * 1_000_000_000;
