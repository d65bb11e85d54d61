//! The thread that writes: whatever waits is committed together, with one device sync.

use std::collections::VecDeque;
use std::mem::take;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use bytes::Bytes;
use greenroom_store::{Applied, Found, Result, StoreError, Version};
use rusqlite::{Connection, OptionalExtension, params};

use crate::file::File;
use crate::request::{Ask, Request};
use crate::turn::Turnstile;
use crate::{fault, schema};

/// A conditional write of one key; answers the new version, if there is one.
pub(crate) struct Write {
    pub(crate) key: String,
    pub(crate) change: Change,
}

/// What a write does, and on which condition.
pub(crate) enum Change {
    Create { value: Bytes },
    Replace { value: Bytes, expected: Version },
    Delete { expected: Version },
}

impl Change {
    /// The value's size.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Create { value } | Self::Replace { value, .. } => value.len(),
            Self::Delete { .. } => 0,
        }
    }
}

impl Ask for Write {
    type Answer = Option<Version>;
    const WRITES: bool = true;

    fn key(&self) -> &str {
        &self.key
    }

    fn bytes(&self) -> usize {
        self.key.len() + self.change.bytes()
    }
}

/// The connection for writes.
pub(crate) struct Writer {
    pub(crate) file: File,
    pub(crate) connection: Connection,
    pub(crate) turnstile: Turnstile,
}

/// Serves writes, in order, until nobody can ask any more; then closes the file.
pub(crate) fn run(writer: Writer, queue: Receiver<Request<Write>>) {
    while let Ok(first) = queue.recv() {
        let mut waiting = VecDeque::from([first]);
        while !waiting.is_empty() {
            writer.commit_some(&mut waiting, &queue);
        }
    }
}

impl Writer {
    /// Commits as many of the `waiting` as one transaction takes, with those that arrive until it has begun.
    fn commit_some(&self, waiting: &mut VecDeque<Request<Write>>, queue: &Receiver<Request<Write>>) {
        let begun = self.begin(waiting, queue);
        let mut bytes = 0;
        let mut batch = Vec::new();
        while let Some(request) = waiting.pop_front_if(|_| batch.len() < BATCH_LEN_MAX && bytes < BATCH_BYTES_MAX) {
            bytes += request.ask.bytes();
            batch.extend(request.begin());
        }
        match begun {
            Err(error) => batch.into_iter().for_each(|request| request.answer(Err(error.clone()))),
            Ok(()) if batch.is_empty() => self.roll_back(),
            Ok(()) => self.carry_out(batch),
        }
    }

    /// Begins a transaction as the file's only writer, as soon as other processes let it; gives up when nobody waits
    /// for it any more, as if it had begun.
    fn begin(&self, waiting: &mut VecDeque<Request<Write>>, queue: &Receiver<Request<Write>>) -> Result<()> {
        let mut turn = self.turnstile.approach();
        loop {
            let room = (BATCH_LEN_MAX * 2).saturating_sub(waiting.len());
            waiting.extend(queue.try_iter().take(room));
            if turn.has_come() {
                match self.connection.execute_batch("BEGIN IMMEDIATE") {
                    Ok(()) => return self.file.check_present().inspect_err(|_| self.roll_back()),
                    Err(error) if fault::is_busy(&error) => {}
                    Err(error) => return Err(fault::without_effect(&self.file, &error)),
                }
            }
            let (wanted, late) = take(waiting).into_iter().partition(Request::is_wanted);
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
    fn carry_out(&self, batch: Vec<Request<Write>>) {
        let applied = self.apply(&batch);
        let outcomes = match applied {
            Ok(outcomes) => outcomes,
            Err(error) => {
                self.roll_back();
                return self.one_by_one(batch, error);
            }
        };
        match self.connection.execute_batch("COMMIT") {
            Ok(()) => batch.into_iter().zip(outcomes).for_each(|(request, outcome)| request.answer(outcome)),
            Err(error) => {
                self.roll_back();
                for (request, outcome) in batch.into_iter().zip(outcomes) {
                    let answer = fault::of_commit(&self.file, &request.ask.key, &error);
                    // What was refused has no effect for sure; but the refusal may rest on another write of this
                    // batch, so it does not stand either.
                    let without_effect = outcome.is_err() && answer.applied() == Applied::Maybe;
                    let certain = || fault::without_effect(&self.file, &error);
                    request.answer(Err(if without_effect { certain() } else { answer }));
                }
            }
        }
    }

    fn one_by_one(&self, batch: Vec<Request<Write>>, error: StoreError) {
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

    /// What each write of the batch will be told if the transaction commits.
    fn apply(&self, batch: &[Request<Write>]) -> Result<Vec<Result<Option<Version>>>> {
        let fault = |error: rusqlite::Error| fault::without_effect(&self.file, &error);
        let mut meta = self.connection.prepare_cached(SELECT_META).map_err(fault)?;
        let (format, before): (i64, i64) = meta.query_row([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(fault)?;
        schema::check_known(&self.file, format)?;
        let mut last_version = before;
        let mut outcomes = Vec::with_capacity(batch.len());
        for request in batch {
            outcomes.push(self.apply_one(&request.ask, &mut last_version).map_err(fault)?);
        }
        if last_version != before {
            let mut update = self.connection.prepare_cached(UPDATE_META).map_err(fault)?;
            update.execute([last_version]).map_err(fault)?;
        }
        Ok(outcomes)
    }

    fn apply_one(&self, write: &Write, last_version: &mut i64) -> rusqlite::Result<Result<Option<Version>>> {
        let (key, next) = (&write.key, *last_version + 1);
        let changed = match &write.change {
            Change::Create { value } => {
                self.connection.prepare_cached(INSERT)?.execute(params![key, next, &value[..]])?
            }
            Change::Replace { value, expected } => {
                let row = params![key, next, &value[..], number(expected)];
                self.connection.prepare_cached(UPDATE)?.execute(row)?
            }
            Change::Delete { expected } => {
                self.connection.prepare_cached(DELETE)?.execute(params![key, number(expected)])?
            }
        };
        if changed == 0 {
            let mut select = self.connection.prepare_cached(SELECT_VERSION)?;
            let current = select.query_row([key], |row| row.get::<_, i64>(0)).optional()?;
            let found = current.map_or(Found::Absent, |number| Found::Version(Version::new(number.to_string())));
            return Ok(Err(StoreError::Conflict { key: key.clone(), found }));
        }
        *last_version = next;
        let deleted = matches!(write.change, Change::Delete { .. });
        Ok(Ok((!deleted).then(|| Version::new(next.to_string()))))
    }

    /// Ends the transaction if there is still one: after some errors SQLite has ended it already.
    fn roll_back(&self) {
        if !self.connection.is_autocommit() {
            // It fails only if there is no transaction, which is what is wanted.
            drop(self.connection.execute_batch("ROLLBACK"));
        }
    }
}

/// The number that a version spells; versions start at 1, so 0 is what no row has.
fn number(version: &Version) -> i64 {
    let text = version.as_str();
    text.parse::<i64>().ok().filter(|number| number.to_string() == text).unwrap_or(0)
}

const SELECT_META: &str = "SELECT format, last_version FROM greenroom_meta";
const UPDATE_META: &str = "UPDATE greenroom_meta SET last_version = ?1";
const SELECT_VERSION: &str = "SELECT version FROM greenroom_store WHERE key = ?1";
const INSERT: &str = "INSERT INTO greenroom_store (key, version, value) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
const UPDATE: &str = "UPDATE greenroom_store SET version = ?2, value = ?3 WHERE key = ?1 AND version = ?4";
const DELETE: &str = "DELETE FROM greenroom_store WHERE key = ?1 AND version = ?2";

/// Most writes in one commit.
const BATCH_LEN_MAX: usize = 512;

/// A commit that has reached this size is not filled further: 16 MiB.
const BATCH_BYTES_MAX: usize = 16 << 20;

/// Between attempts to become the file's writer while another process is.
const BUSY_PAUSE: Duration = Duration::from_micros(150);
