//! When reminders are due, and what they do then.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use greenroom_protocols::reminders::{Fold, Plan, Wall};
use serde::{Deserialize, Serialize};

#[cfg(feature = "cron")]
use super::cron;

/// When a reminder is due again.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Schedule {
    /// Not at all.
    Once,
    /// After so much time, counted from one due time to the next.
    Every(Duration),
    /// At the times that a cron pattern names, in UTC: minute, hour, day of the month, month, day of the week. A program
    /// that is built without it leaves such reminders to others.
    #[cfg(feature = "cron")]
    Cron(String),
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Once => f.write_str("once"),
            Self::Every(period) => write!(f, "every {period:?}"),
            #[cfg(feature = "cron")]
            Self::Cron(pattern) => write!(f, "cron {pattern}"),
        }
    }
}

impl Schedule {
    /// The first due time after `after`; `None` if there is none, or the pattern is none.
    pub(crate) fn next(&self, after: Wall) -> Option<Wall> {
        match self {
            Self::Once => None,
            Self::Every(period) => Some(after + *period),
            #[cfg(feature = "cron")]
            Self::Cron(pattern) => cron::next(pattern, after),
        }
    }
}

/// What a reminder does.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) method: String,
    #[serde(with = "serde_bytes")]
    pub(crate) arguments: Vec<u8>,
    pub(crate) schedule: Schedule,
}

/// A task, shared by all that is under way for it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Planned(pub(crate) Arc<Task>);

impl Plan for Planned {
    fn fold(&self, due: Wall, now: Wall) -> Fold {
        match &self.0.schedule {
            Schedule::Once => Fold { missed: 0, next: None },
            Schedule::Every(period) => {
                let period = period.as_millis().max(1);
                let missed = now.since(due).as_millis() / period;
                let next = u128::from(due.0) + period * (missed + 1);
                Fold { missed: missed as u64, next: u64::try_from(next).ok().map(Wall) }
            }
            #[cfg(feature = "cron")]
            Schedule::Cron(pattern) => cron::fold(pattern, due, now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missed_due_times_fold_into_one() {
        let due = Wall(1_767_258_000_000);
        let fold = |schedule| {
            let task = Task { method: String::new(), arguments: Vec::new(), schedule };
            Planned(Arc::new(task)).fold(due, due + Duration::from_secs(35))
        };
        let next = Some(due + Duration::from_secs(40));
        assert_eq!(fold(Schedule::Every(Duration::from_secs(10))), Fold { missed: 3, next });
        assert_eq!(fold(Schedule::Once), Fold { missed: 0, next: None });
    }
}
