//! Keys as people see and give them.

use std::borrow::Cow;

/// `key` on one line: as it is, or as a JSON string where that could be mistaken.
pub(super) fn shown(key: &str) -> Cow<'_, str> {
    let is_plain = !key.starts_with('"') && key.trim() == key && !key.contains(char::is_control);
    if is_plain { Cow::Borrowed(key) } else { Cow::Owned(serde_json::Value::from(key).to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_would_break_its_line_is_shown_as_json() {
        assert_eq!(shown("state/chat room/é"), "state/chat room/é");
        for (key, text) in [("a\nb", r#""a\nb""#), (" a", r#"" a""#), (r#""a""#, r#""\"a\"""#)] {
            assert_eq!(shown(key), text);
        }
    }
}
