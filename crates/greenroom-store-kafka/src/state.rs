//! What this process knows of the slices, and who waits for what.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use greenroom_store::{Committed, Result, StoreError};
use tokio::sync::oneshot;

use crate::replica::Replica;
use crate::settings::Settings;

/// Shared by all threads of one opening.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    /// This opening's number.
    pub(crate) writer: u64,
    slices: Vec<Mutex<Slice>>,
    over: AtomicBool,
}

/// One slice.
#[derive(Debug)]
pub(crate) struct Slice {
    pub(crate) phase: Phase,
    pub(crate) replica: Replica,
    /// Those whose records are on their way, by serial.
    pub(crate) answers: BTreeMap<u64, Waiting>,
    /// Those who wait until all before an offset is carried out.
    pub(crate) readers: Vec<(i64, oneshot::Sender<()>)>,
    pub(crate) used: Instant,
    /// Bytes behind the last checkpoint when this process last claimed the next one.
    pub(crate) claimed_bytes: u64,
}

/// How far a slice is.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    Closed,
    /// It is being restored; those who wait are told by the end of their channel, and look again.
    Opening,
    Open,
    /// It holds something that this program cannot carry out.
    Broken(StoreError),
}

/// Who waits for what has come of a record.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) key: String,
    pub(crate) answer: oneshot::Sender<Result<Committed>>,
}

impl Shared {
    pub(crate) fn new(settings: Settings, slices: i32, writer: u64) -> Self {
        let slice = || {
            Mutex::new(Slice {
                phase: Phase::Closed,
                replica: Replica::default(),
                answers: BTreeMap::new(),
                readers: Vec::new(),
                used: Instant::now(),
                claimed_bytes: 0,
            })
        };
        let slices = (0..slices).map(|_| slice()).collect();
        Self { settings, writer, slices, over: AtomicBool::new(false) }
    }

    pub(crate) fn slices(&self) -> i32 {
        self.slices.len() as i32
    }

    pub(crate) fn slice(&self, slice: i32) -> MutexGuard<'_, Slice> {
        self.slices[slice as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody uses the journal any more: its threads end.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

impl Slice {
    /// Tells those who waited for what is carried out now.
    pub(crate) fn wake_readers(&mut self) {
        let next = self.replica.next;
        for (_, reader) in self.readers.extract_if(.., |(until, _)| *until <= next) {
            // An error means that it has given up.
            let _ = reader.send(());
        }
    }

    /// Lets go of the replica. Of records on their way nobody learns any more what came of them.
    pub(crate) fn close(&mut self, phase: Phase) {
        self.replica = Replica::default();
        self.readers.clear();
        self.claimed_bytes = 0;
        for Waiting { key, answer } in std::mem::take(&mut self.answers).into_values() {
            let error = match &phase {
                Phase::Broken(error) => error.clone(),
                _ => StoreError::Unknown { key, reason: "its partition of the topics is read anew".to_owned() },
            };
            // An error means that it has given up.
            let _ = answer.send(Err(error));
        }
        self.phase = phase;
    }
}
