//! How much was committed, and what it cost the device.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What a store has done since it was opened, by this process alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Commits, single writes and trims that were applied and changed something.
    pub commits: u64,
    /// Transactions that they shared.
    pub transactions: u64,
    /// Times that the device was told to make something durable: once for each transaction (with
    /// [`Durability::Full`](crate::Durability::Full)), and for each checkpoint at most three times more.
    pub syncs: u64,
}

impl Stats {
    /// Commits that shared one device sync, on average; `None` before the first sync.
    pub fn commits_per_sync(&self) -> Option<f64> {
        (self.syncs > 0).then(|| self.commits as f64 / self.syncs as f64)
    }
}

#[derive(Debug)]
pub(crate) struct Counters {
    commits: AtomicU64,
    transactions: AtomicU64,
    checkpoints: AtomicU64,
    syncs_each: bool,
    opened: Instant,
    /// Milliseconds from then to when the whole log was last in the file.
    copied_at: AtomicU64,
}

impl Counters {
    /// `syncs_each`: whether each transaction is synced.
    pub(crate) fn new(syncs_each: bool) -> Self {
        let (commits, transactions, checkpoints, copied_at) = Default::default();
        Self { commits, transactions, checkpoints, syncs_each, opened: Instant::now(), copied_at }
    }

    /// A transaction was committed in which as many requests have changed something.
    pub(crate) fn committed(&self, changing: u64) {
        self.commits.fetch_add(changing, Ordering::Relaxed);
        self.transactions.fetch_add(u64::from(changing > 0), Ordering::Relaxed);
    }

    /// The log's pages were copied into the file.
    pub(crate) fn checkpointed(&self) {
        self.checkpoints.fetch_add(1, Ordering::Relaxed);
    }

    /// All of the log's pages are in the file.
    pub(crate) fn copied_whole(&self) {
        self.copied_at.store(self.opened.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    /// Returns the time since then, or since the file was opened.
    pub(crate) fn since_checkpoint(&self) -> Duration {
        self.opened.elapsed().saturating_sub(Duration::from_millis(self.copied_at.load(Ordering::Relaxed)))
    }

    pub(crate) fn stats(&self) -> Stats {
        let [commits, transactions, checkpoints] =
            [&self.commits, &self.transactions, &self.checkpoints].map(|counter| counter.load(Ordering::Relaxed));
        let syncs = if self.syncs_each { transactions } else { 0 } + SYNCS_OF_CHECKPOINT_MAX * checkpoints;
        Stats { commits, transactions, syncs }
    }
}

/// The log before it is copied, the file afterwards, and the log's new head with the next transaction.
const SYNCS_OF_CHECKPOINT_MAX: u64 = 3;
