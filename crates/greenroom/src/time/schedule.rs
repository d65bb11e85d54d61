//! When reminders are due, and what they do then.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cronexpr::{Crontab, FallbackTimezoneOption, MakeTimestamp, ParseOptions};
use greenroom_protocols::reminders::{Fold, Plan, Wall};
use serde::{Deserialize, Serialize};

/// When a reminder is due again.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Schedule {
    /// Not at all.
    Once,
    /// After so much time, counted from one due time to the next.
    Every(Duration),
    /// At the times that a cron pattern names, in UTC: minute, hour, day of the month, month, day of the week.
    Cron(String),
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Once => f.write_str("once"),
            Self::Every(period) => write!(f, "every {period:?}"),
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
            Self::Cron(pattern) => following(&parse(pattern).ok()?, after),
        }
    }
}

/// The first time after `after` that a cron pattern names.
fn following(crontab: &Crontab, after: Wall) -> Option<Wall> {
    let after = MakeTimestamp::from_millisecond(i64::try_from(after.0).ok()?).ok()?;
    let next = crontab.find_next(after).ok()?;
    u64::try_from(next.timestamp().as_millisecond()).ok().map(Wall)
}

/// Checks that `pattern` is one.
pub(crate) fn check_cron(pattern: &str) -> Result<(), String> {
    if pattern.len() > PATTERN_LEN_MAX {
        return Err(format!("a cron pattern has at most {PATTERN_LEN_MAX} bytes"));
    }
    parse(pattern).map(drop).map_err(|why| format!("{pattern:?} is no cron pattern: {why}"))
}

fn parse(pattern: &str) -> Result<Crontab, String> {
    let fields = pattern.split_whitespace().count();
    if fields != 5 {
        return Err(format!(
            "it has {fields} fields and not five, minute, hour, day, month and weekday; times are UTC, and what comes up \
             more often than every minute is `every`"
        ));
    }
    let mut options = ParseOptions::default();
    options.fallback_timezone_option = FallbackTimezoneOption::UTC;
    cronexpr::parse_crontab_with(pattern, options).map_err(|error| error.to_string())
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
        let crontab = match &self.0.schedule {
            Schedule::Once => return Fold { missed: 0, next: None },
            Schedule::Every(period) => {
                let period = period.as_millis().max(1);
                let missed = now.since(due).as_millis() / period;
                let next = u128::from(due.0) + period * (missed + 1);
                return Fold { missed: missed as u64, next: u64::try_from(next).ok().map(Wall) };
            }
            Schedule::Cron(pattern) => parse(pattern),
        };
        let Ok(crontab) = crontab else { return Fold { missed: 0, next: None } };
        let mut missed = 0;
        let mut next = following(&crontab, due);
        while let Some(passed) = next.filter(|next| *next <= now) {
            if missed == COUNTED_MAX {
                next = following(&crontab, now);
                break;
            }
            (missed, next) = (missed + 1, following(&crontab, passed));
        }
        Fold { missed, next }
    }
}

/// Longest cron pattern.
const PATTERN_LEN_MAX: usize = 256;
/// Missed due times of a cron pattern that are counted.
const COUNTED_MAX: u64 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn wall(text: &str) -> Wall {
        Wall(text.parse::<MakeTimestamp>().unwrap().0.as_millisecond() as u64)
    }

    fn planned(schedule: Schedule) -> Planned {
        Planned(Arc::new(Task { method: String::new(), arguments: Vec::new(), schedule }))
    }

    #[test]
    fn a_cron_pattern_names_due_times_in_utc() {
        let working_days = Schedule::Cron("0 9 * * 1-5".to_owned());
        // Thursday, then Friday, then Monday.
        assert_eq!(working_days.next(wall("2026-01-01T00:00:00Z")), Some(wall("2026-01-01T09:00:00Z")));
        assert_eq!(working_days.next(wall("2026-01-01T09:00:00Z")), Some(wall("2026-01-02T09:00:00Z")));
        assert_eq!(working_days.next(wall("2026-01-02T09:00:01Z")), Some(wall("2026-01-05T09:00:00Z")));
        let often = Schedule::Cron("*/5 * * * *".to_owned());
        assert_eq!(often.next(wall("2026-01-01T00:04:59.500Z")), Some(wall("2026-01-01T00:05:00Z")));
        for wrong in ["", "0 9 * *", "61 * * * *", "0 0 9 * * 1", "0 9 * * 1 Europe/Paris"] {
            assert!(check_cron(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Schedule::Cron("0 0 31 2 *".to_owned()).next(wall("2026-01-01T00:00:00Z")), None);
    }

    #[test]
    fn missed_due_times_fold_into_one() {
        let due = wall("2026-01-01T09:00:00Z");
        let fold = planned(Schedule::Cron("0 9 * * *".to_owned())).fold(due, wall("2026-01-04T10:00:00Z"));
        assert_eq!(fold, Fold { missed: 3, next: Some(wall("2026-01-05T09:00:00Z")) });
        let fold = planned(Schedule::Every(Duration::from_secs(10))).fold(due, due + Duration::from_secs(35));
        assert_eq!(fold, Fold { missed: 3, next: Some(due + Duration::from_secs(40)) });
        let fold = planned(Schedule::Once).fold(due, due + Duration::from_secs(35));
        assert_eq!(fold, Fold { missed: 0, next: None });
        let minutes = planned(Schedule::Cron("* * * * *".to_owned()));
        let days = Duration::from_secs(10 * 86_400);
        let fold = minutes.fold(due, due + days);
        assert_eq!((fold.missed, fold.next), (COUNTED_MAX, Some(due + days + Duration::from_secs(60))));
    }
}
