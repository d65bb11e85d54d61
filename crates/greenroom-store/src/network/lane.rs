//! The way from a caller in any runtime to the task that writes, and back, within a deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use crate::{Commit, Committed, Result, StoreError};

/// A commit on its way to the task.
pub struct Request {
    /// What is to be carried out.
    pub commit: Commit,
    deadline: Instant,
    state: Arc<AtomicU8>,
    answer: oneshot::Sender<Result<Committed>>,
    _room: Room,
}

impl Request {
    /// The task is about to carry it out: from now on its caller cannot call it off. `None` if that has happened
    /// already, or the deadline has passed (the caller is told).
    pub fn begin(self) -> Option<Self> {
        if self.deadline <= Instant::now() {
            let error = late(self.commit.name());
            self.answer(Err(error));
            return None;
        }
        let begun = self.state.compare_exchange(WAITING, BEGUN, Ordering::AcqRel, Ordering::Acquire);
        (begun.is_ok() && !self.answer.is_closed()).then_some(self)
    }

    /// Until its caller gives up.
    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Tells the caller, if it still listens.
    pub fn answer(self, answer: Result<Committed>) {
        // A caller that no longer listens has been told, or does not want to know.
        drop(self.answer.send(answer));
    }
}

/// The bounded queue before a task that writes.
pub struct Lane {
    store: String,
    queue: mpsc::Sender<Request>,
    queued_bytes: Arc<AtomicUsize>,
}

impl Lane {
    /// A queue of the store called `store`, and its end, which a task is to serve.
    pub fn new(store: &str) -> (Self, mpsc::Receiver<Request>) {
        let (queue, requests) = mpsc::channel(QUEUE_LEN_MAX);
        (Self { store: store.to_owned(), queue, queued_bytes: Arc::default() }, requests)
    }

    /// Asks the task and waits for its answer, at most for `timeout`.
    ///
    /// # Errors
    ///
    /// What the task answers; [`StoreError::NotApplied`] if the queue is full or the commit's turn does not come in time,
    /// [`StoreError::Unknown`] if it has begun and no answer comes, [`StoreError::Unavailable`] if the task has ended.
    ///
    /// # Cancel safety
    ///
    /// A commit that has not begun when the future is dropped never does.
    pub async fn ask(&self, commit: Commit, timeout: Duration) -> Result<Committed> {
        let key = commit.name().to_owned();
        let refused = |reason: String| StoreError::NotApplied { key: key.clone(), reason };
        let Some(room) = Room::take(&self.queued_bytes, commit.bytes()) else {
            return Err(refused(format!("{QUEUE_BYTES_MAX} bytes are waiting already; {SLOWER}")));
        };
        let state = Arc::new(AtomicU8::new(WAITING));
        let (answer, answered) = oneshot::channel();
        let deadline = Instant::now() + timeout;
        let request = Request { commit, deadline, state: state.clone(), answer, _room: room };
        match self.queue.try_send(request) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                return Err(refused(format!("{QUEUE_LEN_MAX} operations are waiting already; {SLOWER}")));
            }
            Err(TrySendError::Closed(_)) => return Err(self.ended()),
        }
        let unknown = |reason: &str| StoreError::Unknown { key: key.clone(), reason: reason.to_owned() };
        match tokio::time::timeout(timeout, answered).await {
            Ok(Ok(answer)) => answer,
            // The task dropped the request unanswered: its runtime has ended.
            Ok(Err(_)) if state.load(Ordering::Acquire) == BEGUN => Err(unknown("the store's runtime has ended")),
            Ok(Err(_)) => Err(self.ended()),
            Err(_) => {
                let called_off = state.compare_exchange(WAITING, CALLED_OFF, Ordering::AcqRel, Ordering::Acquire);
                Err(if called_off.is_ok() { late(&key) } else { unknown("no answer came in time") })
            }
        }
    }

    fn ended(&self) -> StoreError {
        let reason = "the runtime in which it was opened has ended; open it in one that lasts".to_owned();
        StoreError::Unavailable { store: self.store.clone(), reason }
    }
}

/// A share of the memory that waiting requests may hold, given back when dropped.
struct Room {
    queued_bytes: Arc<AtomicUsize>,
    bytes: usize,
}

impl Room {
    fn take(queued_bytes: &Arc<AtomicUsize>, bytes: usize) -> Option<Self> {
        let before = queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        let room = Self { queued_bytes: queued_bytes.clone(), bytes };
        (before + bytes <= QUEUE_BYTES_MAX).then_some(room)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.queued_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

fn late(key: &str) -> StoreError {
    let reason = "its timeout ended before its turn came: the server is slow or cannot be reached; allow more time or \
        look at the server";
    StoreError::NotApplied { key: key.to_owned(), reason: reason.to_owned() }
}

const WAITING: u8 = 0;
const BEGUN: u8 = 1;
const CALLED_OFF: u8 = 2;

const SLOWER: &str = "the server does not keep up, ask again later and more slowly";

/// Most commits that wait for a task.
const QUEUE_LEN_MAX: usize = 4096;

/// Most bytes that commits waiting for a task may hold: 256 MiB.
const QUEUE_BYTES_MAX: usize = 256 << 20;
