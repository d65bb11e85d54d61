//! What one slice of the journal holds: made of a checkpoint and of the commands behind it, the same in every process that
//! has read as far.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use bytes::Bytes;
use greenroom_store::journal::EntriesBuilder;
use greenroom_store::{Committed, Entry, Found, Item, StoreError, Version, Versioned};

use crate::command::{Command, Id, Order, Value, Written};
use crate::record::{Record, RecordKey};

/// A slice as of an offset of its commands.
#[derive(Debug)]
pub(crate) struct Replica {
    /// The offset of the next command.
    pub(crate) next: i64,
    rows: BTreeMap<String, Versioned>,
    logs: BTreeMap<String, Log>,
    /// What is not in the last checkpoint as it is, and since when.
    changed: BTreeMap<RecordKey, i64>,
    /// Who writes the next checkpoint.
    claim: Option<Claim>,
    /// Where the last claim was: no checkpoint has what came later.
    claimed: i64,
    /// Bytes of the commands behind the last checkpoint.
    pub(crate) behind_bytes: u64,
}

#[derive(Debug, Default)]
struct Log {
    entries: VecDeque<Bytes>,
    /// How many were trimmed away: the first of `entries` is at the next position.
    trimmed: u64,
}

impl Log {
    fn end(&self) -> u64 {
        self.trimmed + self.entries.len() as u64 + 1
    }

    fn at(&self, position: u64) -> Option<&Bytes> {
        let index = position.checked_sub(self.trimmed + 1)?;
        self.entries.get(usize::try_from(index).ok()?)
    }
}

/// A claim to the next checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Claim {
    /// The claim's own offset: the checkpoint is of what is there just behind it.
    pub(crate) offset: i64,
    pub(crate) by: Id,
}

/// What has come of a command.
#[derive(Debug)]
pub(crate) enum Carried {
    Committed(Result<Committed, StoreError>),
    Trimmed,
    Claimed,
    Nothing,
}

impl Default for Replica {
    fn default() -> Self {
        let (rows, logs, changed) = Default::default();
        Self { next: 0, rows, logs, changed, claim: None, claimed: -1, behind_bytes: 0 }
    }
}

impl Replica {
    /// Carries out the command at `offset`.
    pub(crate) fn apply(&mut self, offset: i64, bytes: usize, command: Command) -> Carried {
        self.next = offset + 1;
        self.behind_bytes += bytes as u64;
        match command.order {
            Order::Commit { writes, appends } => Carried::Committed(self.commit(offset, writes, appends)),
            Order::Trim { log, through } => {
                self.trim(offset, log, through);
                Carried::Trimmed
            }
            Order::Claim => {
                self.claim = Some(Claim { offset, by: command.id });
                self.claimed = offset;
                Carried::Claimed
            }
            Order::Checkpointed { claim } => {
                // A claim that was followed by another one may not have led to a checkpoint.
                if self.claim.is_some_and(|last| last.offset == claim) {
                    self.changed.retain(|_, since| *since > claim);
                    self.behind_bytes = 0;
                    self.claim = None;
                }
                Carried::Nothing
            }
        }
    }

    fn commit(
        &mut self,
        offset: i64,
        writes: Vec<Written>,
        appends: Vec<(String, Value)>,
    ) -> Result<Committed, StoreError> {
        writes.iter().try_for_each(|write| self.check(write))?;
        let mut committed = Committed::default();
        for (index, write) in writes.into_iter().enumerate() {
            let changes = !matches!(write, Written::Holds(..));
            if changes {
                self.changed.insert(RecordKey::Row(write.key().to_owned()), offset);
            }
            committed.versions.push(match write {
                Written::Create(key, value) | Written::Replace(key, value, _) | Written::Put(key, value) => {
                    // Offsets are never given twice, so versions are not either.
                    let version = Version::new(format!("{offset}-{index}"));
                    self.rows.insert(key, Versioned { value: value.0.into(), version: version.clone() });
                    Some(version)
                }
                Written::Delete(key, _) | Written::Remove(key) => {
                    self.rows.remove(&key);
                    None
                }
                Written::Holds(..) => None,
            });
        }
        for (name, value) in appends {
            let log = self.logs.entry(name.clone()).or_default();
            let position = log.end();
            log.entries.push_back(value.0.into());
            self.changed.insert(RecordKey::Entry(name.clone(), position), offset);
            self.changed.insert(RecordKey::Head(name), offset);
            committed.positions.push(position);
        }
        Ok(committed)
    }

    fn check(&self, write: &Written) -> Result<(), StoreError> {
        let current = self.rows.get(write.key()).map(|row| &row.version);
        let holds = match write {
            Written::Put(..) | Written::Remove(_) => true,
            Written::Create(..) => current.is_none(),
            Written::Replace(..) | Written::Delete(..) | Written::Holds(..) => current == write.expected().as_ref(),
        };
        if holds {
            return Ok(());
        }
        let found = current.cloned().map_or(Found::Absent, Found::Version);
        Err(StoreError::Conflict { key: write.key().to_owned(), found })
    }

    fn trim(&mut self, offset: i64, name: String, through: u64) {
        let Some(log) = self.logs.get_mut(&name) else { return };
        while log.trimmed < through && log.entries.pop_front().is_some() {
            log.trimmed += 1;
            let entry = RecordKey::Entry(name.clone(), log.trimmed);
            // What is in no checkpoint need not be removed from one.
            match self.changed.get(&entry) {
                Some(since) if *since > self.claimed => _ = self.changed.remove(&entry),
                _ => _ = self.changed.insert(entry, offset),
            }
            self.changed.insert(RecordKey::Head(name.clone()), offset);
        }
    }

    /// Takes in a record of a checkpoint; a later one of the same key takes its place.
    pub(crate) fn restore(&mut self, key: RecordKey, record: Option<Record>) {
        match (key, record) {
            (RecordKey::Row(key), Some(Record::Row(row))) => _ = self.rows.insert(key, row),
            (RecordKey::Row(key), _) => _ = self.rows.remove(&key),
            (RecordKey::Head(name), Some(Record::Head { trimmed })) => {
                self.logs.entry(name).or_default().trimmed = trimmed;
            }
            (RecordKey::Checkpoint, Some(Record::Checkpoint { claim })) => self.next = claim + 1,
            // Entries are put in order at the end, and heads and checkpoints are never removed.
            _ => {}
        }
    }

    /// Takes in the entries of all logs of a checkpoint, when its heads are known. What was trimmed before and is still
    /// there is removed by the next checkpoint.
    pub(crate) fn restore_entries(&mut self, entries: BTreeMap<(String, u64), Bytes>) {
        for ((name, position), value) in entries {
            let log = self.logs.entry(name.clone()).or_default();
            if position == log.end() {
                log.entries.push_back(value);
            } else {
                self.changed.insert(RecordKey::Entry(name, position), 0);
            }
        }
    }

    /// The last claim.
    pub(crate) fn claim(&self) -> Option<Claim> {
        self.claim
    }

    /// What a checkpoint of now must write: all that is not in the last one as it is. `None` is for what is not there.
    pub(crate) fn unsaved(&self) -> Vec<(RecordKey, Option<Record>)> {
        let record = |key: &RecordKey| match key {
            RecordKey::Row(key) => self.rows.get(key).cloned().map(Record::Row),
            RecordKey::Head(name) => self.logs.get(name).map(|log| Record::Head { trimmed: log.trimmed }),
            RecordKey::Entry(name, position) => {
                self.logs.get(name).and_then(|log| log.at(*position)).cloned().map(Record::Entry)
            }
            RecordKey::Checkpoint => None,
        };
        self.changed.keys().map(|key| (key.clone(), record(key))).collect()
    }

    pub(crate) fn read(&self, key: &str) -> Option<Versioned> {
        self.rows.get(key).cloned()
    }

    /// The rows under `prefix` behind `after`, at most `limit`.
    pub(crate) fn scan(&self, prefix: &str, after: Option<&str>, limit: usize) -> Vec<Item> {
        let from = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let matches = self.rows.range::<str, _>((from, Bound::Unbounded));
        let matches = matches.take_while(|(key, _)| key.starts_with(prefix)).take(limit);
        matches.map(|(key, versioned)| Item { key: key.clone(), versioned: versioned.clone() }).collect()
    }

    pub(crate) fn entries(&self, log: &str, from: u64, limit: usize) -> Vec<Entry> {
        let mut entries = EntriesBuilder::new(limit);
        if let Some(log) = self.logs.get(log) {
            for position in from.max(log.trimmed + 1)..log.end() {
                if entries.is_full() {
                    break;
                }
                entries.push(Entry { position, value: log.at(position).cloned().unwrap_or_default() });
            }
        }
        entries.finish()
    }

    pub(crate) fn end(&self, log: &str) -> u64 {
        self.logs.get(log).map_or(1, Log::end)
    }
}

#[cfg(test)]
mod tests;
