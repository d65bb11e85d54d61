//! Durations, as people write them.

use std::time::Duration;

/// A number with its unit: `2s`, `500ms`, `1.5s`, `1m`, `1h`. `None` if it is none.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    let seconds = match unit.trim_start() {
        "ms" => number / 1000.0,
        "s" => number,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_needs_its_unit() {
        assert_eq!(parse("2s"), Some(Duration::from_secs(2)));
        assert_eq!(parse(" 500ms "), Some(Duration::from_millis(500)));
        assert_eq!(parse("1.5 s"), Some(Duration::from_millis(1500)));
        assert_eq!(parse("1m"), Some(Duration::from_secs(60)));
        for wrong in ["", "2", "s", "-1s", "1e9s", "1..2s", "2 parsecs", "99999999999999999999999999s", "é"] {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
    }
}
