//! The collector of a run's reports.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use greenroom::prelude::*;
use tokio::sync::Notify;

use crate::report::{Report, Total};

/// Collects what the actors of one run report, and lets the driver wait for it.
///
/// All its turns are `&self`: reports come in while the driver's call waits.
#[derive(Default, Actor)]
pub struct Tally {
    total: Mutex<Total>,
    changed: Notify,
}

#[actor]
impl Tally {
    /// Adds an actor's report.
    pub async fn report(&self, report: Report) {
        self.total.lock().unwrap_or_else(PoisonError::into_inner).add(report);
        self.changed.notify_waiters();
    }

    /// All reports together once there are `reports` of them; what there is after `patience_ms` milliseconds.
    pub async fn wait(&self, reports: u64, patience_ms: u64) -> Report {
        let _ = tokio::time::timeout(Duration::from_millis(patience_ms), self.until(reports)).await;
        self.total.lock().unwrap_or_else(PoisonError::into_inner).report()
    }
}

impl Tally {
    async fn until(&self, reports: u64) {
        loop {
            let changed = self.changed.notified();
            if self.total.lock().unwrap_or_else(PoisonError::into_inner).reports() >= reports {
                return;
            }
            changed.await;
        }
    }
}
