//! Percent-encoding: how a URL writes what would end one of its parts.

use std::fmt::{self, Write};

/// The text that `encoded` stands for; what is wrong with it otherwise.
pub(super) fn decode(encoded: &str) -> Result<String, &'static str> {
    let mut decoded = Vec::with_capacity(encoded.len());
    let mut bytes = encoded.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|digit| char::from(digit).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err("a `%` in it is not followed by two hexadecimal digits; write `%` itself as \"%25\"");
        };
        decoded.push((high * 16 + low) as u8);
    }
    String::from_utf8(decoded).map_err(|_| "its percent escapes do not stand for UTF-8; escape the UTF-8 bytes")
}

/// Shows a text with everything escaped that could end a part of a URL; slashes too, unless they are `kept`.
pub(super) struct Encoded<'a> {
    pub(super) text: &'a str,
    pub(super) kept: &'static str,
}

impl fmt::Display for Encoded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.text.bytes() {
            let character = char::from(byte);
            if character.is_ascii_alphanumeric() || "-._~".contains(character) || self.kept.contains(character) {
                f.write_char(character)?;
            } else {
                write!(f, "%{byte:02X}")?;
            }
        }
        Ok(())
    }
}
