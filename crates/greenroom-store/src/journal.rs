//! Stores that can also commit several writes at once, and append to logs: what reliable actors need.
//!
//! ```
//! use std::time::Duration;
//! use greenroom_store::{Commit, Journal, Store, memory::MemoryStore};
//!
//! # async fn example() -> greenroom_store::Result<()> {
//! let journal = MemoryStore::new();
//! let by = Duration::from_secs(1);
//! let fence = journal.create("partition/7", "owner 1".into(), by).await?;
//! let turn = Commit::new().hold("partition/7", &fence).put("counter/a", "1".into()).append("outbox/7", "hi".into());
//! assert_eq!(journal.commit(turn, by).await?.positions, [1]);
//! journal.replace("partition/7", "owner 2".into(), &fence, by).await?;
//! let late = Commit::new().hold("partition/7", &fence).put("counter/a", "2".into());
//! assert!(journal.commit(late, by).await.is_err(), "a successor has taken the fence");
//! # Ok(())
//! # }
//! ```

mod commit;

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;

pub use commit::{Append, Commit, Write};

use crate::{Result, Store, Version};

/// A store that commits several writes and appends as one.
///
/// **A commit is all or nothing.** Every condition of it is met and all of it is applied at one moment between the call
/// and the answer, or nothing of it ever is, whatever crashes. Two commits (and the single writes of [`Store`]) that
/// touch the same key or log happen one after the other. Reads see all of a commit or nothing of it: who has read
/// one key of it finds every other one written too.
///
/// **An acknowledged commit is durable**, as far as the engine's guide says of its single writes.
///
/// **Commits that wait together may share one device sync** (group commit): callers get throughput by having many
/// commits in flight, and an idle journal answers after one sync. Which of those in flight comes first is not said; a
/// caller that needs an order waits for one before it asks for the next, or puts both into one commit.
///
/// **A log is a sequence of entries** at positions 1, 2, 3 and so on, without a gap: a commit that fails uses none up.
/// A position is never given twice, also after [`trim`](Self::trim). Logs are no keys: they have names of their own
/// (checked by [`key::check`](crate::key::check)), and neither reads nor scans of the store meet them. A log needs no
/// creation, and a little of it (its next position) stays for ever, so do not name logs after passing things.
///
/// **A fence** is a key that each new owner of a thing replaces, and that every commit of an owner
/// [holds](Write::Holds): after the replacement no commit of an earlier owner is applied, also one whose outcome was
/// [unknown](crate::StoreError::Unknown) and that is still on its way. Behind a fence one writes without conditions.
///
/// Each call takes a `timeout`, as those of [`Store`] do.
///
/// # Cancel safety
///
/// A future that is dropped before it answers leaves the outcome unknown: the commit may be applied, also later.
pub trait Journal: Store {
    /// Applies all of `commit`, if all its conditions hold. A commit of nothing does nothing.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`](crate::StoreError::Conflict), which names a key whose condition did not hold, and
    /// nothing is changed; [`StoreError::InvalidCommit`](crate::StoreError::InvalidCommit) if it breaks a rule of
    /// [`Commit::check`]; otherwise as [`StoreError::applied`](crate::StoreError::applied) says of the whole commit.
    fn commit(&self, commit: Commit, timeout: Duration) -> BoxFuture<'_, Result<Committed>>;

    /// The entries of `log` from position `from` on, in order; none if it has none there (yet).
    ///
    /// At most `limit` of them, clamped to 1..=[`ENTRIES_MAX`], and about [`ENTRIES_BYTES_MAX`]: fewer may come although
    /// more follow, but at least one if there is one. What was trimmed away is passed over: the first may lie behind
    /// `from`. As strongly consistent as a read.
    ///
    /// # Errors
    ///
    /// As for [`Store::read`], with the log's name for the key.
    fn entries<'a>(
        &'a self,
        log: &'a str,
        from: u64,
        limit: usize,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Vec<Entry>>>;

    /// The position that the next entry of `log` will get: 1 for a log that never had one.
    ///
    /// # Errors
    ///
    /// As for [`Store::read`], with the log's name for the key.
    fn end<'a>(&'a self, log: &'a str, timeout: Duration) -> BoxFuture<'a, Result<u64>>;

    /// Removes the entries of `log` up to and with position `through`, as far as there are any: those to come are not
    /// concerned. May be repeated.
    ///
    /// # Errors
    ///
    /// As [`StoreError::applied`](crate::StoreError::applied) says, with the log's name for the key; after any error
    /// some of the entries may be gone, the first ones first.
    fn trim<'a>(&'a self, log: &'a str, through: u64, timeout: Duration) -> BoxFuture<'a, Result<()>>;

    /// How much one commit may hold; [`Limits::default`] unless the engine takes less.
    fn limits(&self) -> Limits {
        Limits::default()
    }
}

/// What an applied commit has brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// For each of [`Commit::writes`], in their order: the key's new version; `None` where it got none, as for a
    /// deletion, a removal, or a condition alone.
    pub versions: Vec<Option<Version>>,
    /// For each of [`Commit::appends`], in their order: the entry's position in its log.
    pub positions: Vec<u64>,
}

/// What is at a position of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Counted from 1.
    pub position: u64,
    /// What was appended.
    pub value: Bytes,
}

/// How much one commit may hold: who batches asks for it first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most writes and appends together.
    pub operations_max: usize,
    /// Most bytes of all keys, values and entries together.
    pub bytes_max: usize,
    /// Most bytes of one value or entry.
    pub value_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { operations_max: OPERATIONS_MAX, bytes_max: BYTES_MAX, value_bytes_max: crate::memory::VALUE_BYTES_MAX }
    }
}

/// Fills an answer to [`Journal::entries`] within its bounds; for providers, which offer it entries in order.
#[derive(Debug)]
pub struct EntriesBuilder {
    entries: Vec<Entry>,
    limit: usize,
    bytes: usize,
}

impl EntriesBuilder {
    /// At most `limit` entries, clamped to 1..=[`ENTRIES_MAX`], and about [`ENTRIES_BYTES_MAX`].
    pub fn new(limit: usize) -> Self {
        Self { entries: Vec::new(), limit: limit.clamp(1, ENTRIES_MAX), bytes: 0 }
    }

    /// Whether it holds all it may.
    pub fn is_full(&self) -> bool {
        self.entries.len() >= self.limit || self.bytes >= ENTRIES_BYTES_MAX
    }

    /// Adds the next entry to an answer that is not full.
    pub fn push(&mut self, entry: Entry) {
        self.bytes += entry.value.len();
        self.entries.push(entry);
    }

    /// The answer.
    pub fn finish(self) -> Vec<Entry> {
        self.entries
    }
}

/// Most writes and appends in one commit of any journal.
pub const OPERATIONS_MAX: usize = 4096;

/// Most bytes in one commit of any journal, keys and log names counted: 80 MiB, so that the largest value fits.
pub const BYTES_MAX: usize = 80 << 20;

/// Most entries in one answer.
pub const ENTRIES_MAX: usize = 1000;

/// An answer that has reached this size ends, after at least one entry: 4 MiB.
pub const ENTRIES_BYTES_MAX: usize = 4 << 20;

#[cfg(test)]
mod tests;
