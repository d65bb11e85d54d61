//! What is wrong at a node, in words: since when, by what figures, and what to do. Pure: [`Facts`] in, findings out.
//!
//! A check says what is so at a moment. A finding appears once that has held for as long as its check says, and goes when it has not
//! held for three times as long: one that cries wolf is a bug.

mod checks;
mod facts;
mod finding;
mod watch;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub(crate) use self::facts::{
    Certificate, Cluster, Disk, Facts, Kind, Lease, Member, Memory, Method, Shard, Share, Standing,
};
pub use self::finding::{Evidence, Finding};
pub(crate) use self::watch::Watch;
use super::level::Level;
use super::subject::Subject;
use crate::here::parts::Part;

/// A check.
struct Check {
    name: &'static str,
    /// How long what it looks for must have held.
    holds: Duration,
    /// The page of the console to look at.
    page: &'static str,
    remedy: &'static str,
    look: fn(&Facts, &mut Vec<Found>),
}

/// What a check has found at a moment.
#[derive(Debug)]
struct Found {
    level: Level,
    subject: Subject,
    title: String,
    text: String,
    evidence: Vec<Evidence>,
    /// How long that is known to have been so when it is found first.
    for_long: Duration,
}

impl Found {
    fn new(level: Level, subject: Subject, title: String, text: impl Into<String>) -> Self {
        Self { level, subject, title, text: text.into(), evidence: Vec::new(), for_long: Duration::ZERO }
    }

    fn with(mut self, name: &'static str, value: f64, unit: &'static str) -> Self {
        self.evidence.push(Evidence { name: name.into(), value, unit: unit.into() });
        self
    }
}

/// What a node has found last, for whoever looks.
#[derive(Default)]
pub(crate) struct Findings(Mutex<Arc<[Finding]>>);

impl Part for Findings {}

impl Findings {
    /// The worst first, and of those the oldest.
    pub(crate) fn last(&self) -> Arc<[Finding]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn publish(&self, findings: Vec<Finding>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = findings.into();
    }
}

/// What several nodes have found, each once: the worst first, and of those the oldest.
pub(crate) fn together(found: impl IntoIterator<Item = Finding>) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::new();
    for finding in found {
        match all.iter_mut().find(|known| known.id == finding.id) {
            Some(known) if known.since <= finding.since => {}
            Some(known) => *known = finding,
            None => all.push(finding),
        }
    }
    all.sort_by(|one, other| (other.level, one.since, &one.id).cmp(&(one.level, other.since, &other.id)));
    all
}
