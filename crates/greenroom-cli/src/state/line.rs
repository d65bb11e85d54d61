//! One key and its value as a line of JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use greenroom_store::Version;
use serde::{Deserialize, Serialize};

/// `{"key":"a","text":"1"}`, or `{"key":"a","base64":"/w=="}` where the value is no text.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Line {
    key: String,
    /// Told by `get`, not by `export`: it means nothing to another store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

impl Line {
    pub(super) fn new(key: String, value: &[u8]) -> Self {
        let (text, base64) = match str::from_utf8(value) {
            Ok(text) => (Some(text.to_owned()), None),
            Err(_) => (None, Some(STANDARD.encode(value))),
        };
        Self { key, version: None, text, base64 }
    }

    /// The same, with the value's version.
    pub(super) fn at(self, version: &Version) -> Self {
        Self { version: Some(version.as_str().to_owned()), ..self }
    }

    pub(super) fn parse(line: &[u8]) -> Result<(String, Bytes), String> {
        let line: Self = serde_json::from_slice(line).map_err(|error| {
            format!("it is not a key and value ({error}); write {{\"key\":\"a\",\"text\":\"1\"}} on one line")
        })?;
        let value = match (line.text, line.base64) {
            (Some(text), None) => text.into(),
            (None, Some(base64)) => {
                let decoded = STANDARD.decode(base64);
                decoded.map_err(|error| format!("the value of key {:?} is no base64: {error}", line.key))?.into()
            }
            _ => return Err(format!("key {:?} needs either \"text\" or \"base64\", and not both", line.key)),
        };
        Ok((line.key, value))
    }

    pub(super) fn json(&self) -> String {
        serde_json::to_string(self).expect("strings can be written as JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_keeps_text_bytes_and_odd_keys() {
        for (key, value) in [("a", "ada\n\"1\"".as_bytes()), ("é \u{1}", &[0, 159, 255]), ("leer", b"")] {
            let line = Line::new(key.to_owned(), value).json();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(Line::parse(line.as_bytes()), Ok((key.to_owned(), Bytes::copy_from_slice(value))));
        }
    }

    #[test]
    fn a_line_without_one_value_says_what_it_needs() {
        for (line, words) in [
            (r#"{"key":"a"}"#, "either \"text\" or \"base64\""),
            (r#"{"key":"a","text":"1","base64":"MQ=="}"#, "not both"),
            (r#"{"key":"a","base64":"*"}"#, "no base64"),
            ("a=1", "not a key and value"),
        ] {
            let error = Line::parse(line.as_bytes()).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
