//! Commits of several writes and appends, each as one transaction of etcd.
//!
//! A log is a key for each entry and one, its head, for the position of the next; a commit that appends compares the
//! heads as it compares its conditions. When a head is no longer where this process last saw it, the refused
//! transaction tells where it is, and the commit is made again: nothing of it was applied.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use greenroom_store::journal::{EntriesBuilder, Limits, Write};
use greenroom_store::{Commit, Committed, Entry, Found, Journal, Result, StoreError, key};
use prost::Message;
use tokio::sync::{Mutex as Turn, MutexGuard as Taken};

use crate::connection::{Effect, deadline};
use crate::layout::{revision, version};
use crate::proto::{Compare, DeleteRangeRequest, KeyValue, PutRequest, RANGE, RangeRequest, RangeResponse};
use crate::proto::{Request, RequestOp, TxnRequest};
use crate::{ANSWER_BYTES_MAX, EtcdStore, Inner, REQUEST_OVERHEAD_BYTES, kvs};

/// Where a log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    /// The position of the next entry.
    next: u64,
    /// When that was written; 0 if never.
    revision: i64,
}

/// What a process knows of the ends of logs, and the turns in which its own commits append to them: those to one log
/// would only refuse each other.
#[derive(Debug)]
pub(crate) struct Heads {
    known: Mutex<BTreeMap<String, Head>>,
    turns: Vec<Turn<()>>,
}

impl Heads {
    pub(crate) fn new() -> Self {
        Self { known: Mutex::default(), turns: (0..TURNS).map(|_| Turn::new(())).collect() }
    }

    fn of(&self, log: &str) -> Head {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(log).copied().unwrap_or(Head { next: 1, revision: 0 })
    }

    fn learn(&self, log: &str, head: Head) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_MAX && !known.contains_key(log) {
            known.clear();
        }
        known.insert(log.to_owned(), head);
    }

    /// Waits until no other commit of this process appends to `logs`.
    async fn turns<'a>(&self, logs: impl Iterator<Item = &'a String>) -> Vec<Taken<'_, ()>> {
        let number = |log: &String| log.bytes().fold(7_usize, |hash, byte| hash.wrapping_mul(31) ^ usize::from(byte));
        let mut numbers: Vec<_> = logs.map(|log| number(log) % TURNS).collect();
        // Always in the same order, so that nobody waits in a circle.
        numbers.sort_unstable();
        numbers.dedup();
        let mut taken = Vec::new();
        for number in numbers {
            taken.push(self.turns[number].lock().await);
        }
        taken
    }
}

impl Inner {
    async fn commit(&self, commit: Commit, timeout: Duration) -> Result<Committed> {
        commit.check(&self.limits(), &self.connection.name())?;
        if commit.operations() == 0 {
            return Ok(Committed::default());
        }
        let name = commit.name().to_owned();
        let by = deadline(&name, timeout)?;
        let mut logs: BTreeMap<String, Head> = BTreeMap::new();
        for append in &commit.appends {
            logs.insert(append.log.clone(), self.heads.of(&append.log));
        }
        let late = |what: &str| {
            let reason = format!("its timeout ended {what}; allow more time or use more logs");
            StoreError::NotApplied { key: name.clone(), reason }
        };
        let turns = tokio::time::timeout_at(by.into(), self.heads.turns(logs.keys())).await;
        let _turns = turns.map_err(|_| late("while others appended to its logs"))?;
        // What was known before the turn came is old.
        logs.iter_mut().for_each(|(log, head)| *head = self.heads.of(log));
        loop {
            let (txn, positions) = self.transaction(&commit, &logs);
            let excess = txn.encoded_len().saturating_sub(self.request_bytes_max - REQUEST_OVERHEAD_BYTES);
            if excess > 0 {
                let reason = format!("it is {excess} bytes over what one request may have; split it");
                return Err(StoreError::InvalidCommit { key: name, reason });
            }
            let answer = self.txn(txn, &name, commit.bytes(), by).await?;
            if answer.succeeded {
                let revision = answer.header.unwrap_or_default().revision;
                return Ok(self.applied(&commit, &logs, positions, revision));
            }
            let found: BTreeMap<&[u8], &KeyValue> = kvs(&answer).map(|found| (&found.key[..], found)).collect();
            self.refused(&commit, &found)?;
            for (log, head) in &mut logs {
                *head = self.head(log, found.get(&self.layout.head(log)[..]).copied())?;
                self.heads.learn(log, *head);
            }
            if Instant::now() >= by {
                return Err(late("while others appended to its logs"));
            }
        }
    }

    /// The transaction that applies `commit` if its logs end where `logs` says, and the positions of its entries.
    fn transaction(&self, commit: &Commit, logs: &BTreeMap<String, Head>) -> (TxnRequest, Vec<u64>) {
        let mut txn = TxnRequest::default();
        let mut compare = |name: Bytes, revision, keys_only| {
            txn.compare.push(Compare::is_at(name.clone(), revision));
            txn.failure.push(Request::Range(RangeRequest { key: name, keys_only, ..RangeRequest::default() }).into());
        };
        for write in &commit.writes {
            if let Some(expected) = condition(write) {
                compare(self.layout.key(write.key()), expected, true);
            }
            txn.success.extend(self.change(write));
        }
        let put = |key, value| RequestOp::from(Request::Put(PutRequest { key, value }));
        let mut next: BTreeMap<&str, u64> = logs.iter().map(|(log, head)| (log.as_str(), head.next)).collect();
        let mut positions = Vec::new();
        for append in &commit.appends {
            let position = next.get_mut(append.log.as_str()).expect("every log of the commit is there");
            txn.success.push(put(self.layout.entry(&append.log, *position), append.entry.clone()));
            positions.push(*position);
            *position += 1;
        }
        for (log, head) in logs {
            compare(self.layout.head(log), head.revision, false);
            txn.success.push(put(self.layout.head(log), next[log.as_str()].to_string().into()));
        }
        (txn, positions)
    }

    fn change(&self, write: &Write) -> Option<RequestOp> {
        let name = self.layout.key(write.key());
        Some(RequestOp::from(match write {
            Write::Create { value, .. } | Write::Replace { value, .. } | Write::Put { value, .. } => {
                Request::Put(PutRequest { key: name, value: value.clone() })
            }
            Write::Delete { .. } | Write::Remove { .. } => {
                Request::DeleteRange(DeleteRangeRequest { key: name, range_end: Bytes::new() })
            }
            Write::Holds { .. } => return None,
        }))
    }

    fn applied(&self, commit: &Commit, logs: &BTreeMap<String, Head>, positions: Vec<u64>, revision: i64) -> Committed {
        for (log, head) in logs {
            let appended = commit.appends.iter().filter(|append| append.log == *log).count() as u64;
            self.heads.learn(log, Head { next: head.next + appended, revision });
        }
        let versions = commit.writes.iter().map(|write| write.value().map(|_| version(revision))).collect();
        Committed { versions, positions }
    }

    /// The conflict, if it was a condition and not a log's end that did not hold.
    fn refused(&self, commit: &Commit, found: &BTreeMap<&[u8], &KeyValue>) -> Result<()> {
        for write in &commit.writes {
            let Some(expected) = condition(write) else { continue };
            let there = found.get(&self.layout.key(write.key())[..]).map(|found| found.mod_revision);
            if there.unwrap_or(0) != expected {
                let found = there.map_or(Found::Absent, |revision| Found::Version(version(revision)));
                return Err(StoreError::Conflict { key: write.key().to_owned(), found });
            }
        }
        Ok(())
    }

    fn head(&self, log: &str, found: Option<&KeyValue>) -> Result<Head> {
        let Some(found) = found else { return Ok(Head { next: 1, revision: 0 }) };
        let next = str::from_utf8(&found.value).ok().and_then(|text| text.parse().ok());
        let next = next.ok_or_else(|| StoreError::Format {
            store: self.connection.name(),
            reason: format!("the end of log {log:?} is no number: something else writes under this prefix"),
        })?;
        Ok(Head { next, revision: found.mod_revision })
    }

    async fn end(&self, log: &str, by: Instant) -> Result<u64> {
        let range = RangeRequest { key: self.layout.head(log), ..RangeRequest::default() };
        let answer = self.connection.ask(RANGE, range, Effect::Reads, ANSWER_BYTES_MAX, by).await;
        let answer: RangeResponse = answer.map_err(|failure| self.read_error(failure, log))?;
        Ok(self.head(log, answer.kvs.first())?.next)
    }

    async fn entries(&self, log: &str, from: u64, limit: usize, timeout: Duration) -> Result<Vec<Entry>> {
        key::check(log)?;
        let by = deadline(log, timeout)?;
        let mut entries = EntriesBuilder::new(limit);
        let (from, end) = self.layout.entries(log, from);
        self.walk(from, end, log, by, limit, |found| {
            if entries.is_full() {
                return false;
            }
            if let Some(position) = self.layout.position_of(log, &found.key) {
                entries.push(Entry { position, value: found.value });
            }
            true
        })
        .await?;
        Ok(entries.finish())
    }

    async fn trim(&self, log: &str, through: u64, timeout: Duration) -> Result<()> {
        key::check(log)?;
        let by = deadline(log, timeout)?;
        // Not beyond the end: a removal that is applied late must not meet entries that have come since.
        let through = through.min(self.end(log, by).await? - 1);
        let range =
            DeleteRangeRequest { key: self.layout.entry(log, 0), range_end: self.layout.entry(log, through + 1) };
        let txn = TxnRequest { success: vec![Request::DeleteRange(range).into()], ..TxnRequest::default() };
        self.txn(txn, log, 0, by).await.map(drop)
    }

    fn limits(&self) -> Limits {
        Limits {
            // An append to a log of its own is two operations.
            operations_max: self.operations_max / 2,
            bytes_max: self.request_bytes_max - NAMES_BYTES_MAX,
            value_bytes_max: self.request_bytes_max - 2 * NAMES_BYTES_MAX,
        }
    }
}

impl Journal for EtcdStore {
    fn commit(&self, commit: Commit, timeout: Duration) -> BoxFuture<'_, Result<Committed>> {
        self.inner.commit(commit, timeout).boxed()
    }

    fn entries<'a>(
        &'a self,
        log: &'a str,
        from: u64,
        limit: usize,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Vec<Entry>>> {
        self.inner.entries(log, from, limit, timeout).boxed()
    }

    fn end<'a>(&'a self, log: &'a str, timeout: Duration) -> BoxFuture<'a, Result<u64>> {
        async move {
            key::check(log)?;
            self.inner.end(log, deadline(log, timeout)?).await
        }
        .boxed()
    }

    fn trim<'a>(&'a self, log: &'a str, through: u64, timeout: Duration) -> BoxFuture<'a, Result<()>> {
        self.inner.trim(log, through, timeout).boxed()
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }
}

/// The revision at which the key of `write` must have been changed last, if it has a condition.
fn condition(write: &Write) -> Option<i64> {
    match write {
        Write::Create { .. } => Some(0),
        other => other.expected().map(revision),
    }
}

/// Turns for all logs together.
const TURNS: usize = 64;

/// Most logs whose ends are remembered.
const KNOWN_MAX: usize = 4096;

/// Room in a request for the names in it: each occurs up to three times.
const NAMES_BYTES_MAX: usize = 256 << 10;
