//! What has happened to the cluster, and when.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A log of events, on one clock with the callers' histories.
pub(crate) struct Events {
    began: Instant,
    inner: Mutex<Inner>,
}

struct Inner {
    file: File,
    all: Vec<Event>,
}

/// A fault or what followed from one.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) from: Duration,
    pub(crate) to: Option<Duration>,
    /// The fault's kind; `None` for what followed.
    pub(crate) kind: Option<&'static str>,
    pub(crate) what: String,
    /// Whose activations it may end; `None` for all nodes'.
    pub(crate) strikes: Option<BTreeSet<String>>,
}

impl Events {
    pub(crate) fn new(folder: &Path) -> Result<Self, String> {
        let file = File::create(folder.join("events")).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self { began: Instant::now(), inner: Mutex::new(Inner { file, all: Vec::new() }) })
    }

    /// Time since the run began.
    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Notes that something begins, and gives its number.
    pub(crate) fn begin(&self, kind: Option<&'static str>, what: String, strikes: Option<BTreeSet<String>>) -> usize {
        let from = self.now();
        let mut inner = self.inner();
        inner.say(from, &what);
        inner.all.push(Event { from, to: None, kind, what, strikes });
        inner.all.len() - 1
    }

    /// Notes that it is over.
    pub(crate) fn end(&self, event: usize) {
        let now = self.now();
        let mut inner = self.inner();
        inner.all[event].to = Some(now);
        let what = format!("end of: {}", inner.all[event].what);
        inner.say(now, &what);
    }

    /// Writes down what strikes nobody.
    pub(crate) fn note(&self, what: &str) {
        let now = self.now();
        self.inner().say(now, what);
    }

    pub(crate) fn all(&self) -> Vec<Event> {
        self.inner().all.clone()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// A log that cannot be written is no reason to end the run.
    fn say(&mut self, at: Duration, what: &str) {
        drop(writeln!(self.file, "{:9.3} {what}", at.as_secs_f64()));
    }
}
