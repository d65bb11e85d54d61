//! The way from an async caller to a thread that owns a connection, and back, within a deadline.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use greenroom_store::{Result, StoreError};
use tokio::sync::oneshot;

use crate::file::File;

/// What can be asked of a thread.
pub(crate) trait Ask: Send + Sync + 'static {
    type Answer: Send + 'static;
    /// Whether it may have an effect once it has begun.
    const WRITES: bool;
    /// The key that errors name.
    fn key(&self) -> &str;
    /// What it holds in memory while it waits.
    fn bytes(&self) -> usize;
}

/// A question on its way to the thread.
pub(crate) struct Request<A: Ask> {
    asked: Arc<Asked<A>>,
    deadline: Instant,
    answer: oneshot::Sender<Result<A::Answer>>,
}

/// What is asked, and how far that has come: both sides see it, and errors name its key.
struct Asked<A> {
    ask: A,
    state: AtomicU8,
    _room: Room,
}

impl<A: Ask> Request<A> {
    pub(crate) fn ask(&self) -> &A {
        &self.asked.ask
    }

    /// The thread is about to carry it out: from now on its caller cannot call it off. `None` if that has happened
    /// already, or the deadline has passed (the caller is told).
    pub(crate) fn begin(self, now: Instant) -> Option<Self> {
        if !self.is_wanted(now) {
            self.refuse_late();
            return None;
        }
        let begun = self.asked.state.compare_exchange(WAITING, BEGUN, Ordering::AcqRel, Ordering::Acquire);
        begun.is_ok().then_some(self)
    }

    /// Whether its caller still waits and its deadline has not passed.
    pub(crate) fn is_wanted(&self, now: Instant) -> bool {
        !self.answer.is_closed() && self.deadline > now
    }

    /// Tells the caller that its deadline has passed before the request had begun.
    pub(crate) fn refuse_late(self) {
        let error = late(self.ask());
        self.answer(Err(error));
    }

    /// Tells the caller, if it still listens.
    pub(crate) fn answer(self, answer: Result<A::Answer>) {
        // A caller that no longer listens has been told, or does not want to know.
        drop(self.answer.send(answer));
    }
}

/// A thread that owns a connection, and the bounded queue before it.
pub(crate) struct Lane<A: Ask> {
    file: File,
    queue: Option<SyncSender<Request<A>>>,
    queued_bytes: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl<A: Ask> Lane<A> {
    /// Starts the thread, which serves until the lane is dropped.
    pub(crate) fn start(
        name: &str,
        file: File,
        serve: impl FnOnce(Receiver<Request<A>>) + Send + 'static,
    ) -> Result<Self> {
        let (queue, requests) = sync_channel(QUEUE_LEN_MAX);
        let started = std::thread::Builder::new().name(name.to_owned()).spawn(move || serve(requests));
        let thread = started.map_err(|error| StoreError::Unavailable {
            store: file.name(),
            reason: format!("its thread {name} cannot be started ({error}); raise the limit of threads"),
        })?;
        Ok(Self { file, queue: Some(queue), queued_bytes: Arc::default(), thread: Some(thread) })
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Asks the thread and waits for its answer, at most for `timeout`.
    pub(crate) async fn ask(&self, ask: A, timeout: Duration) -> Result<A::Answer> {
        let Some(room) = Room::take(&self.queued_bytes, ask.bytes()) else {
            return Err(refused(&ask, &format!("{QUEUE_BYTES_MAX} bytes are waiting already; {SLOWER}")));
        };
        let asked = Arc::new(Asked { ask, state: AtomicU8::new(WAITING), _room: room });
        let (answer, answered) = oneshot::channel();
        let request = Request { asked: asked.clone(), deadline: Instant::now() + timeout, answer };
        match self.queue.as_ref().map(|queue| queue.try_send(request)) {
            Some(Ok(())) => {}
            Some(Err(TrySendError::Full(_))) => {
                let reason = format!("{QUEUE_LEN_MAX} operations are waiting already; {SLOWER}");
                return Err(refused(&asked.ask, &reason));
            }
            Some(Err(TrySendError::Disconnected(_))) | None => return Err(self.dead()),
        }
        match tokio::time::timeout(timeout, answered).await {
            Ok(Ok(answer)) => answer,
            // The thread dropped the request unanswered: it has panicked.
            Ok(Err(_)) if A::WRITES && asked.state.load(Ordering::Acquire) == BEGUN => Err(unknown(&asked.ask)),
            Ok(Err(_)) => Err(self.dead()),
            Err(_) => {
                let state = &asked.state;
                let called_off = state.compare_exchange(WAITING, CALLED_OFF, Ordering::AcqRel, Ordering::Acquire);
                Err(if called_off.is_err() && A::WRITES { unknown(&asked.ask) } else { late(&asked.ask) })
            }
        }
    }

    fn dead(&self) -> StoreError {
        let reason = "its thread has ended by a panic; open the store again".to_owned();
        StoreError::Unavailable { store: self.file.name(), reason }
    }
}

impl<A: Ask> Drop for Lane<A> {
    /// Waits until the thread has closed its connection: at most one commit, as nobody else asks any more.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // The panic of a thread was reported when it happened.
            drop(thread.join());
        }
    }
}

impl<A: Ask> fmt::Debug for Lane<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane").field("file", &self.file).finish_non_exhaustive()
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

fn refused(ask: &impl Ask, reason: &str) -> StoreError {
    StoreError::NotApplied { key: ask.key().to_owned(), reason: reason.to_owned() }
}

fn late(ask: &impl Ask) -> StoreError {
    let reason = "its timeout ended before its turn came: the disk is slow or another process holds the file's lock; \
        allow more time or look for a stopped process";
    refused(ask, reason)
}

fn unknown(ask: &impl Ask) -> StoreError {
    StoreError::Unknown { key: ask.key().to_owned(), reason: "no answer came in time".to_owned() }
}

const WAITING: u8 = 0;
const BEGUN: u8 = 1;
const CALLED_OFF: u8 = 2;

const SLOWER: &str = "the disk does not keep up, ask again later and more slowly";

/// Most requests that wait for a thread.
const QUEUE_LEN_MAX: usize = 4096;

/// Most bytes that requests waiting for a thread may hold: 256 MiB.
const QUEUE_BYTES_MAX: usize = 256 << 20;
