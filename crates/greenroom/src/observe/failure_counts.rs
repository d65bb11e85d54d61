//! Failures that no caller hears of, counted for findings.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Counts failures by subject since the node started, and keeps the last reason of each.
#[derive(Default)]
pub(crate) struct FailureCounts(Mutex<BTreeMap<&'static str, (u64, String)>>);

impl FailureCounts {
    /// Counts one failure.
    pub(crate) fn count(&self, subject: &'static str, reason: &str) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, last) = counts.entry(subject).or_default();
        *count += 1;
        reason.clone_into(last);
    }

    /// Returns each subject with its number of failures and the last reason.
    pub(crate) fn counted(&self) -> Vec<(&'static str, u64, String)> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|(subject, (count, last))| (*subject, *count, last.clone())).collect()
    }
}
