//! What the store is asked to do.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use greenroom_store::{Commit, Journal, Result, Store, StoreError, Version};
use greenroom_stores::Opened;
use hdrhistogram::Histogram;

use super::{COMMITTERS, IN_FLIGHT, VALUE};
use crate::report;

/// How much was done in how much time.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Rate {
    done: f64,
    time: Duration,
}

impl Rate {
    pub(super) fn of(done: f64, time: Duration) -> Self {
        Self { done, time }
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self { done: self.done + other.done, time: self.time + other.time }
    }

    /// `None` if it was never measured.
    pub(super) fn per_s(self) -> Option<f64> {
        (!self.time.is_zero() && self.done > 0.0).then(|| self.done / self.time.as_secs_f64())
    }
}

/// Keys that nobody else uses, each of one writer.
pub(super) struct Load<'a> {
    store: &'a dyn Store,
    journal: Option<&'a dyn Journal>,
    prefix: String,
    /// Of the writers' keys.
    versions: Mutex<Vec<Version>>,
}

impl<'a> Load<'a> {
    pub(super) fn new(opened: &'a Opened) -> Self {
        let prefix = format!("bench/{}/", uuid::Uuid::new_v4());
        Self { store: &*opened.store, journal: opened.journal.as_deref(), prefix, versions: Mutex::default() }
    }

    /// What all its keys begin with.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Creates what is written and read later; answers the fence that commits hold.
    pub(super) async fn create(&self) -> Result<Version> {
        let creates = (0..IN_FLIGHT).map(async |n| self.store.create(&self.key(n), VALUE.into(), TIMEOUT).await);
        let versions = try_join_all(creates).await?;
        self.keep(versions);
        self.store.create(&self.fence(), "owner".into(), TIMEOUT).await
    }

    /// Each writer replaces its key, one write after another.
    pub(super) async fn writes(&self, span: Duration, latency: &mut Histogram<u64>) -> Result<Rate> {
        let (begun, versions) = (Instant::now(), self.versions());
        let writers = versions.into_iter().enumerate().map(async |(n, mut version)| {
            let (key, mut times) = (self.key(n), Vec::new());
            while begun.elapsed() < span {
                let sent = Instant::now();
                version = self.store.replace(&key, VALUE.into(), &version, TIMEOUT).await?;
                times.push(sent.elapsed());
            }
            Ok::<_, StoreError>((version, times))
        });
        let written = try_join_all(writers).await?;
        let (time, mut done) = (begun.elapsed(), 0);
        let mut versions = Vec::with_capacity(written.len());
        for (version, times) in written {
            versions.push(version);
            done += times.len();
            for time in times {
                report::add(latency, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), 1);
            }
        }
        self.keep(versions);
        Ok(Rate::of(done as f64, time))
    }

    /// Each reader reads its key, again and again.
    pub(super) async fn reads(&self, span: Duration) -> Result<Rate> {
        let begun = Instant::now();
        let readers = (0..IN_FLIGHT).map(async |n| {
            let (key, mut done) = (self.key(n), 0_u64);
            while begun.elapsed() < span {
                self.store.read(&key, TIMEOUT).await?;
                done += 1;
            }
            Ok::<_, StoreError>(done)
        });
        let done: u64 = try_join_all(readers).await?.into_iter().sum();
        Ok(Rate::of(done as f64, begun.elapsed()))
    }

    /// Each committer commits what a turn of a reliable actor does: behind the fence, its state, and an entry of an outbox.
    pub(super) async fn commits(&self, journal: &dyn Journal, owner: &Version, span: Duration) -> Result<Rate> {
        let (begun, fence) = (Instant::now(), self.fence());
        let committers = (0..COMMITTERS).map(async |n| {
            let (key, log, mut done) = (self.state(n), outbox(n), 0_u64);
            while begun.elapsed() < span {
                let turn = Commit::new().hold(&fence, owner).put(&key, VALUE.into());
                journal.commit(turn.append(&log, VALUE.into()), TIMEOUT).await?;
                done += 1;
            }
            Ok::<_, StoreError>(done)
        });
        let done: u64 = try_join_all(committers).await?.into_iter().sum();
        Ok(Rate::of(done as f64, begun.elapsed()))
    }

    /// Removes what it has written.
    pub(super) async fn tidy(&self) -> Result<()> {
        loop {
            let page = self.store.scan(&self.prefix, None, IN_FLIGHT, TIMEOUT).await?;
            let removals = page.items.iter();
            let removals = removals.map(|item| self.store.delete(&item.key, &item.versioned.version, TIMEOUT));
            try_join_all(removals).await?;
            if page.next.is_none() {
                break;
            }
        }
        let Some(journal) = self.journal else { return Ok(()) };
        for n in 0..OUTBOXES {
            let log = outbox(n);
            let end = journal.end(&log, TIMEOUT).await?;
            journal.trim(&log, end.saturating_sub(1), TIMEOUT).await?;
        }
        Ok(())
    }

    fn key(&self, n: usize) -> String {
        format!("{}key/{n}", self.prefix)
    }

    fn state(&self, n: usize) -> String {
        format!("{}state/{n}", self.prefix)
    }

    fn fence(&self) -> String {
        format!("{}fence", self.prefix)
    }

    fn versions(&self) -> Vec<Version> {
        std::mem::take(&mut *self.versions.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn keep(&self, versions: Vec<Version>) {
        *self.versions.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = versions;
    }
}

/// The same in every run, as a log's name stays for ever.
fn outbox(n: usize) -> String {
    format!("bench/outbox/{}", n % OUTBOXES)
}

/// As many as a node may have partitions of reliable actors.
const OUTBOXES: usize = 16;

const TIMEOUT: Duration = Duration::from_secs(60);
