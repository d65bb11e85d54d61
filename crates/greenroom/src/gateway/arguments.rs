//! Arguments in JSON, read as RFC 8259 and JSON Schema mean them before any language reads them: a byte order mark is skipped, `1.0` and
//! `1e3` are integers, and an object with a member twice is refused, as languages disagree about which one counts.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use crate::actor::error::Refusal;

/// Returns `text` without a byte order mark.
pub(super) fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// Returns the arguments with integers written as integers. A text that is no JSON stays as it is: its reader says what is wrong.
///
/// # Errors
/// [`Refusal::Invalid`], with the path: a member is there twice, or the nesting is too deep.
pub(super) fn normal(text: &[u8]) -> Result<Cow<'_, [u8]>, Refusal> {
    let text = without_mark(text);
    let mut scan = Scan { text, levels: Vec::new(), copied: 0, out: Vec::new() };
    let mut at = 0;
    while at < text.len() {
        at = scan.step(at)?;
    }
    Ok(match scan.out.is_empty() {
        true => Cow::Borrowed(text),
        false => {
            scan.out.extend_from_slice(&text[scan.copied..]);
            Cow::Owned(scan.out)
        }
    })
}

struct Scan<'a> {
    text: &'a [u8],
    levels: Vec<Level<'a>>,
    /// The end of the text that has been copied to `out`.
    copied: usize,
    /// The text so far with other numbers; empty as long as none was changed.
    out: Vec<u8>,
}

/// An object or a list that has not ended.
enum Level<'a> {
    Object {
        names: BTreeSet<Cow<'a, [u8]>>,
        /// The member whose value comes.
        current: Cow<'a, [u8]>,
        /// True where the next text is a name.
        is_name_next: bool,
    },
    List {
        index: usize,
    },
}

impl<'a> Scan<'a> {
    /// Reads the token that begins at `at`; returns where it ends.
    fn step(&mut self, at: usize) -> Result<usize, Refusal> {
        match self.text[at] {
            b'{' => {
                let (names, current) = (BTreeSet::new(), Cow::Borrowed(&b""[..]));
                self.enter(Level::Object { names, current, is_name_next: true })?;
            }
            b'[' => self.enter(Level::List { index: 0 })?,
            b'}' | b']' => drop(self.levels.pop()),
            b',' => match self.levels.last_mut() {
                Some(Level::Object { is_name_next, .. }) => *is_name_next = true,
                Some(Level::List { index }) => *index += 1,
                None => {}
            },
            b'"' => {
                let end = self.end_of_text(at);
                self.name(at..end)?;
                return Ok(end);
            }
            b'-' | b'0'..=b'9' => {
                let len = self.text[at..].iter().take_while(|byte| is_of_number(**byte)).count();
                self.number(at..at + len);
                return Ok(at + len);
            }
            _ => {}
        }
        Ok(at + 1)
    }

    fn enter(&mut self, level: Level<'a>) -> Result<(), Refusal> {
        if self.levels.len() >= DEPTH_MAX {
            return Err(self.wrong(&format!("it is nested deeper than {DEPTH_MAX} levels")));
        }
        self.levels.push(level);
        Ok(())
    }

    fn end_of_text(&self, from: usize) -> usize {
        let mut at = from + 1;
        while let Some(byte) = self.text.get(at) {
            match byte {
                b'"' => return at + 1,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        self.text.len()
    }

    /// Takes in a text, which may be the name of a member.
    fn name(&mut self, range: Range<usize>) -> Result<(), Refusal> {
        let quoted = &self.text[range];
        let Some(Level::Object { names, current, is_name_next }) = self.levels.last_mut() else { return Ok(()) };
        if !std::mem::take(is_name_next) {
            return Ok(());
        }
        let plain = quoted.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(quoted);
        let unescaped = || serde_json::from_slice::<String>(quoted).ok().map(|text| Cow::Owned(text.into_bytes()));
        let name = plain.contains(&b'\\').then(unescaped).flatten().unwrap_or(Cow::Borrowed(plain));
        *current = name.clone();
        match names.insert(name) {
            true => Ok(()),
            false => Err(self.wrong("the member is there twice; send it once")),
        }
    }

    fn number(&mut self, range: Range<usize>) {
        if let Some(integer) = integer(&self.text[range.clone()]) {
            self.out.extend_from_slice(&self.text[self.copied..range.start]);
            self.out.extend_from_slice(integer.as_bytes());
            self.copied = range.end;
        }
    }

    fn wrong(&self, message: &str) -> Refusal {
        let mut field = String::new();
        for level in &self.levels {
            match level {
                Level::Object { current, .. } => {
                    let dot = if field.is_empty() { "" } else { "." };
                    field.extend([dot, &String::from_utf8_lossy(current)]);
                }
                Level::List { index } => field.push_str(&format!("[{index}]")),
            }
        }
        Refusal::Invalid { field, message: message.to_owned() }
    }
}

fn is_of_number(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E')
}

/// Returns the integer that a number with a fraction or an exponent is, if it is one that programs have: from -2^63 to below 2^64. The
/// number -0 is 0; -0.0 keeps its sign.
fn integer(number: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(number).ok()?;
    if text == "-0" {
        return Some("0".to_owned());
    }
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.strip_prefix('+').unwrap_or(exponent).parse::<i32>().ok()?),
        None if digits.contains('.') => (digits, 0),
        None => return None,
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    // Numbers that JSON does not have stay as they are, for their reader to refuse.
    let is_number = !whole.is_empty() && (whole == "0" || !whole.starts_with('0'));
    let is_fraction = mantissa.contains('.') != fraction.is_empty();
    let digits_only = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || !is_fraction || !digits_only(whole) || !digits_only(fraction) {
        return None;
    }
    let all = [whole, fraction].concat();
    let significant = all.trim_end_matches('0');
    let zeros = i32::try_from(all.len() - significant.len()).ok()?;
    let shift = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?.checked_add(zeros)?;
    let significant = significant.trim_start_matches('0');
    if significant.is_empty() {
        return sign.is_empty().then(|| "0".to_owned());
    }
    let shift = usize::try_from(shift).ok().filter(|shift| significant.len() + shift <= DIGITS_MAX)?;
    let value: i128 = format!("{sign}{significant}{}", "0".repeat(shift)).parse().ok()?;
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&value).then(|| value.to_string())
}

/// U+FEFF in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// Deepest nesting, which is that of the reader in Rust.
const DEPTH_MAX: usize = 128;
/// Digits of the largest integer, 2^64 - 1.
const DIGITS_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn normalised(text: &str) -> String {
        String::from_utf8(normal(text.as_bytes()).unwrap().into_owned()).unwrap()
    }

    #[test]
    fn integers_are_written_as_integers_whatever_their_form() {
        for (given, wanted) in [
            ("1.0", "1"),
            ("1e3", "1000"),
            ("1.5E+1", "15"),
            ("-2.50e1", "-25"),
            ("1200e-2", "12"),
            ("0.0", "0"),
            ("0e9", "0"),
            ("-0", "0"),
            ("18446744073709551615.0", "18446744073709551615"),
            ("1.8446744073709551615e19", "18446744073709551615"),
            ("-9.223372036854775808e18", "-9223372036854775808"),
        ] {
            assert_eq!(
                normalised(&format!("{{\"a\":[{given},\"{given}\"]}}")),
                format!("{{\"a\":[{wanted},\"{given}\"]}}")
            );
        }
        for same in [
            "1",
            "0",
            "-7",
            "0.5",
            "-0.0",
            "1e-1",
            "1e300",
            "1e99999999999",
            "18446744073709551616.0",
            "01.0",
            "1.",
            ".0",
            "1.0.0",
            "1e",
            "--1",
        ] {
            assert_eq!(normalised(&format!("[{same}]")), format!("[{same}]"));
        }
    }

    #[test]
    fn a_byte_order_mark_is_skipped_once() {
        assert_eq!(normalised("\u{feff}{\"a\":1}"), "{\"a\":1}");
        assert_eq!(normalised("\u{feff}\u{feff}{}"), "\u{feff}{}");
    }

    #[test]
    fn a_member_that_is_there_twice_is_named_by_its_path() {
        for (text, path) in [
            (r#"{"a":1,"a":2}"#, "a"),
            (r#"{"a":1,"\u0061":2}"#, "a"),
            (r#"{"a":[{},{"b":{"c":1,"d":2,"c":3}}]}"#, "a[1].b.c"),
        ] {
            let Err(Refusal::Invalid { field, .. }) = normal(text.as_bytes()) else { panic!("{text} is refused") };
            assert_eq!(field, path);
        }
        for text in
            [r#"{"a":"a","b":"a"}"#, r#"[{"a":1},{"a":1}]"#, r#"{"a":{"a":"\"a\""}}"#, r#"{"a" 1,}]]"#, "\"", "{\"a\\"]
        {
            assert_eq!(normalised(text), text);
        }
        let deep = "[".repeat(129);
        assert!(normal(deep.as_bytes()).is_err() && normal(&deep.as_bytes()[1..]).is_ok());
    }
}
