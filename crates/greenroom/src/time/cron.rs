//! Cron patterns.

use cronexpr::{Crontab, FallbackTimezoneOption, MakeTimestamp, ParseOptions};
use greenroom_protocols::reminders::{Fold, Wall};

/// The first time after `after` that `pattern` names; `None` if there is none, or it is no pattern.
pub(super) fn next(pattern: &str, after: Wall) -> Option<Wall> {
    following(&parse(pattern).ok()?, after)
}

/// The first time after `after` that a cron pattern names.
fn following(crontab: &Crontab, after: Wall) -> Option<Wall> {
    let after = MakeTimestamp::from_millisecond(i64::try_from(after.0).ok()?).ok()?;
    let next = crontab.find_next(after).ok()?;
    u64::try_from(next.timestamp().as_millisecond()).ok().map(Wall)
}

/// One due time for those that `pattern` names from `due` to `now`.
pub(super) fn fold(pattern: &str, due: Wall, now: Wall) -> Fold {
    let Ok(crontab) = parse(pattern) else { return Fold { missed: 0, next: None } };
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

/// Checks that `pattern` is one.
pub(super) fn check(pattern: &str) -> Result<(), String> {
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

    #[test]
    fn a_cron_pattern_names_due_times_in_utc() {
        let working_days = |after| next("0 9 * * 1-5", wall(after));
        // Thursday, then Friday, then Monday.
        assert_eq!(working_days("2026-01-01T00:00:00Z"), Some(wall("2026-01-01T09:00:00Z")));
        assert_eq!(working_days("2026-01-01T09:00:00Z"), Some(wall("2026-01-02T09:00:00Z")));
        assert_eq!(working_days("2026-01-02T09:00:01Z"), Some(wall("2026-01-05T09:00:00Z")));
        let often = next("*/5 * * * *", wall("2026-01-01T00:04:59.500Z"));
        assert_eq!(often, Some(wall("2026-01-01T00:05:00Z")));
        for wrong in ["", "0 9 * *", "61 * * * *", "0 0 9 * * 1", "0 9 * * 1 Europe/Paris"] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
        assert_eq!(next("0 0 31 2 *", wall("2026-01-01T00:00:00Z")), None);
    }

    #[test]
    fn missed_times_of_a_cron_pattern_fold_into_one() {
        let fold = fold("0 9 * * *", wall("2026-01-01T09:00:00Z"), wall("2026-01-04T10:00:00Z"));
        assert_eq!(fold, Fold { missed: 3, next: Some(wall("2026-01-05T09:00:00Z")) });
    }
}
