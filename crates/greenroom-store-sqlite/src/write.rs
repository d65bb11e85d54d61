//! The thread that writes: whatever waits is committed together, with one device sync.

use std::collections::VecDeque;
use std::mem::take;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use greenroom_store::{Applied, Commit, Committed, Result, StoreError};
use rusqlite::Connection;

use crate::apply::Applying;
use crate::counters::Counters;
use crate::file::File;
use crate::request::{Ask, Request};
use crate::turn::Turnstile;
use crate::{fault, schema};

/// What the thread can be asked to do.
pub(crate) enum Ordered {
    /// A single write too is a commit.
    Commit(Commit),
    /// Removes some of the log's first entries.
    Trim { log: String, through: u64 },
}

/// What came of it.
pub(crate) enum Outcome {
    Committed(Committed),
    /// Whether to ask again, as more entries may be left to trim.
    Trimmed {
        more: bool,
    },
}

impl Ordered {
    fn operations(&self) -> usize {
        match self {
            Self::Commit(commit) => commit.operations(),
            Self::Trim { .. } => OPERATIONS_OF_TRIM,
        }
    }
}

impl Ask for Ordered {
    type Answer = Outcome;
    const WRITES: bool = true;

    fn key(&self) -> &str {
        match self {
            Self::Commit(commit) => commit.name(),
            Self::Trim { log, .. } => log,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Commit(commit) => commit.bytes(),
            Self::Trim { log, .. } => log.len(),
        }
    }
}

/// The connection for writes.
pub(crate) struct Writer {
    pub(crate) file: File,
    pub(crate) connection: Connection,
    pub(crate) turnstile: Turnstile,
    pub(crate) counters: Arc<Counters>,
}

/// Serves writes, in order, until nobody can ask any more; then closes the file.
pub(crate) fn run(writer: Writer, queue: Receiver<Request<Ordered>>) {
    let mut answered = 0;
    while let Ok(first) = queue.recv() {
        let mut waiting = VecDeque::from([first]);
        gather(&mut waiting, &queue, answered);
        while !waiting.is_empty() {
            answered = writer.commit_some(&mut waiting, &queue);
        }
    }
}

/// Waits a moment for as many as were just `answered`, who are likely about to ask again: a sync for a few of them would
/// make the others wait for a second one. A caller who is alone waits for nobody.
fn gather(waiting: &mut VecDeque<Request<Ordered>>, queue: &Receiver<Request<Ordered>>, answered: usize) {
    while waiting.len() < answered.min(WAITING_MAX) {
        let Ok(next) = queue.recv_timeout(GATHER) else { return };
        waiting.push_back(next);
    }
}

impl Writer {
    /// Commits as many of the `waiting` as one transaction takes, with those that arrive until it has begun; answers how
    /// many these were.
    fn commit_some(&self, waiting: &mut VecDeque<Request<Ordered>>, queue: &Receiver<Request<Ordered>>) -> usize {
        let begun = self.begin(waiting, queue);
        let (mut operations, mut bytes) = (0, 0);
        let now = Instant::now();
        let mut batch = Vec::new();
        while let Some(request) = waiting.pop_front_if(|_| operations < BATCH_OPERATIONS_MAX && bytes < BATCH_BYTES_MAX)
        {
            operations += request.ask().operations();
            bytes += request.ask().bytes();
            batch.extend(request.begin(now));
        }
        let requests = batch.len();
        match begun {
            Err(error) => batch.into_iter().for_each(|request| request.answer(Err(error.clone()))),
            Ok(()) if batch.is_empty() => self.roll_back(),
            Ok(()) => self.carry_out(batch),
        }
        requests
    }

    /// Begins a transaction as the file's only writer, as soon as other processes let it; gives up when nobody waits
    /// for it any more, as if it had begun.
    fn begin(&self, waiting: &mut VecDeque<Request<Ordered>>, queue: &Receiver<Request<Ordered>>) -> Result<()> {
        let mut turn = self.turnstile.approach();
        loop {
            let room = WAITING_MAX.saturating_sub(waiting.len());
            waiting.extend(queue.try_iter().take(room));
            if turn.has_come() {
                match self.connection.execute_batch("BEGIN IMMEDIATE") {
                    Ok(()) => return self.file.check_present().inspect_err(|_| self.roll_back()),
                    Err(error) if fault::is_busy(&error) => {}
                    Err(error) => return Err(fault::without_effect(&self.file, &error)),
                }
            }
            let now = Instant::now();
            let (wanted, late) = take(waiting).into_iter().partition(|request| request.is_wanted(now));
            *waiting = wanted;
            VecDeque::into_iter(late).for_each(Request::refuse_late);
            if waiting.is_empty() {
                return Ok(());
            }
            std::thread::sleep(BUSY_PAUSE);
        }
    }

    /// Applies the batch in the transaction that has begun, commits, answers. If one write spoils the transaction
    /// (no room for a large value, say), each is tried by itself.
    fn carry_out(&self, batch: Vec<Request<Ordered>>) {
        let (outcomes, changing) = match self.apply(&batch) {
            Ok(applied) => applied,
            Err(error) => {
                self.roll_back();
                return self.one_by_one(batch, error);
            }
        };
        match self.connection.execute_batch("COMMIT") {
            Ok(()) => {
                self.counters.committed(changing);
                batch.into_iter().zip(outcomes).for_each(|(request, outcome)| request.answer(outcome));
            }
            Err(error) => {
                self.roll_back();
                for (request, outcome) in batch.into_iter().zip(outcomes) {
                    let answer = fault::of_commit(&self.file, request.ask().key(), &error);
                    // What was refused has no effect for sure; but the refusal may rest on another write of this
                    // batch, so it does not stand either.
                    let without_effect = outcome.is_err() && answer.applied() == Applied::Maybe;
                    let certain = || fault::without_effect(&self.file, &error);
                    request.answer(Err(if without_effect { certain() } else { answer }));
                }
            }
        }
    }

    fn one_by_one(&self, batch: Vec<Request<Ordered>>, error: StoreError) {
        if batch.len() == 1 {
            return batch.into_iter().for_each(|request| request.answer(Err(error.clone())));
        }
        for request in batch {
            match self.connection.execute_batch("BEGIN IMMEDIATE") {
                Ok(()) => self.carry_out(vec![request]),
                Err(error) => request.answer(Err(fault::without_effect(&self.file, &error))),
            }
        }
    }

    /// What each of the batch will be told if the transaction commits, and how many of them have changed something.
    fn apply(&self, batch: &[Request<Ordered>]) -> Result<(Vec<Result<Outcome>>, u64)> {
        let fault = |error: rusqlite::Error| fault::without_effect(&self.file, &error);
        let mut meta = self.connection.prepare_cached(SELECT_META).map_err(fault)?;
        let (format, before): (i64, i64) = meta.query_row([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(fault)?;
        schema::check_known(&self.file, format)?;
        let mut applying = Applying::new(&self.connection, before);
        let mut outcomes = Vec::with_capacity(batch.len());
        for request in batch {
            outcomes.push(applying.apply(request.ask()).map_err(fault)?);
        }
        applying.finish().map_err(fault)?;
        if applying.last_version != before {
            let mut update = self.connection.prepare_cached(UPDATE_META).map_err(fault)?;
            update.execute([applying.last_version]).map_err(fault)?;
        }
        Ok((outcomes, applying.changing))
    }

    /// Ends the transaction if there is still one: after some errors SQLite has ended it already.
    fn roll_back(&self) {
        if !self.connection.is_autocommit() {
            // It fails only if there is no transaction, which is what is wanted.
            drop(self.connection.execute_batch("ROLLBACK"));
        }
    }
}

const SELECT_META: &str = "SELECT format, last_version FROM greenroom_meta";
const UPDATE_META: &str = "UPDATE greenroom_meta SET last_version = ?1";

/// A transaction that has as many writes and appends is not filled further.
const BATCH_OPERATIONS_MAX: usize = 4096;

/// What a trim counts for among them.
const OPERATIONS_OF_TRIM: usize = 512;

/// Most requests that are taken from the queue ahead of their transaction.
const WAITING_MAX: usize = 1024;

/// A transaction that has reached this size is not filled further: 16 MiB.
const BATCH_BYTES_MAX: usize = 16 << 20;

/// Silence after which a transaction waits for no more: short against a device's sync.
const GATHER: Duration = Duration::from_micros(50);

/// Between attempts to become the file's writer while another process is.
const BUSY_PAUSE: Duration = Duration::from_micros(150);
