//! Which keys every engine can hold.

use crate::{Result, StoreError};

/// Checks that every engine can hold `key`: not empty, at most [`KEY_BYTES_MAX`] bytes, no NUL. Anything else goes:
/// slashes, percent signs, spaces, any script; a provider escapes what its engine reserves.
///
/// # Errors
///
/// [`StoreError::InvalidKey`], which says what is wrong.
pub fn check(key: &str) -> Result<()> {
    if key.is_empty() {
        return Err(invalid(key, "it is empty; give every value a name".to_owned()));
    }
    check_bounds(key)
}

/// Checks the prefix of a scan: as a key, but it may be empty.
///
/// # Errors
///
/// [`StoreError::InvalidKey`], which says what is wrong.
pub fn check_prefix(prefix: &str) -> Result<()> {
    check_bounds(prefix)
}

fn check_bounds(key: &str) -> Result<()> {
    if key.len() > KEY_BYTES_MAX {
        let reason = format!("it has {} bytes, at most {KEY_BYTES_MAX} are allowed; shorten or hash it", key.len());
        return Err(invalid(key, reason));
    }
    if key.contains('\0') {
        return Err(invalid(key, "it contains a NUL character; escape it".to_owned()));
    }
    Ok(())
}

fn invalid(key: &str, reason: String) -> StoreError {
    const SHOWN_CHARS_MAX: usize = 64;
    let mut shown: String = key.chars().take(SHOWN_CHARS_MAX).collect();
    if shown.len() < key.len() {
        shown.push('…');
    }
    StoreError::InvalidKey { key: shown, reason }
}

/// Longest key in bytes: what the tightest engine allows (an S3 object's 1024) less room for a provider's own prefix.
pub const KEY_BYTES_MAX: usize = 900;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overlong_key_is_named_by_its_beginning_only() {
        let message = check(&"é".repeat(600)).unwrap_err().to_string();
        assert!(message.contains("1200 bytes") && message.len() < 300, "{message}");
    }

    #[test]
    fn a_key_of_the_greatest_length_is_allowed() {
        assert_eq!(check(&"k".repeat(KEY_BYTES_MAX)), Ok(()));
        assert!(check(&"k".repeat(KEY_BYTES_MAX + 1)).is_err());
    }
}
