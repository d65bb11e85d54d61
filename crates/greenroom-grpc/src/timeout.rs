//! `grpc-timeout`: how long a client waits.

use std::time::Duration;

use http::HeaderMap;
use tonic::Status;

use crate::status;

/// What the client says, if anything.
///
/// # Errors
/// INVALID_ARGUMENT: it is no time.
pub(crate) fn of(headers: &HeaderMap) -> Result<Option<Duration>, Status> {
    let Some(said) = headers.get("grpc-timeout") else { return Ok(None) };
    let read = said.to_str().ok().and_then(parse);
    let message = "it is a number of at most eight digits and a unit of H, M, S, m, u or n";
    read.map(Some).ok_or_else(|| status::invalid("grpc-timeout", message))
}

fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let fits = (1..=8).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit());
    let number: u64 = digits.parse().ok().filter(|_| fits)?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_a_number_and_its_unit() {
        assert_eq!(parse("250m"), Some(Duration::from_millis(250)));
        assert_eq!(parse("99999999H"), Some(Duration::from_secs(99_999_999 * 3600)));
        for bad in ["", "S", "1", "1s", "123456789S", "-1S", "+1S", "1.5S", "1 S", "\u{e9}"] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }
}
