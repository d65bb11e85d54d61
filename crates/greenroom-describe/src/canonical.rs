//! The bytes that a description is known by. Every SDK writes the same, so the rules are few and need no library:
//!
//! - Left out are `doc` of the description and of its methods, members of these two that are null, and in schemas the keywords
//!   `$comment`, `default`, `deprecated`, `description`, `examples`, `title` and all that begin with `x-`. A schema in which
//!   nothing is left is `true`.
//! - Keys are sorted by their UTF-8 bytes, there are no spaces, and text is escaped where JSON asks for it and nowhere else: `\"`,
//!   `\\`, `\b`, `\f`, `\n`, `\r`, `\t`, and `\u00xx` in lower case for other control characters.
//! - A number that is whole and at most 2^48 in size is written in decimal. Any other is written as the text `f32:` and the 8
//!   hexadecimal digits of the nearest single-precision number's bits: languages do not agree on how to write fractions, nor
//!   libraries on the last bit of what they read.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::schema::{self, Holds};

/// SHA-256 of a description's canonical bytes; as text in 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(pub [u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits: Option<Vec<u8>> =
            text.chars().map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
        let digits =
            digits.filter(|digits| digits.len() == 64 && text.chars().all(|digit| !digit.is_ascii_uppercase()));
        let digits = digits.ok_or("a digest has 64 hexadecimal digits in lower case")?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = pair[0] << 4 | pair[1];
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Digest {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

pub(crate) fn digest(document: &Value) -> Digest {
    Digest(Sha256::digest(bytes(document)).into())
}

pub(crate) fn bytes(document: &Value) -> Vec<u8> {
    let mut out = String::new();
    let Value::Object(members) = document else { return Vec::new() };
    object(&mut out, members.iter().filter(|(name, value)| is_said(name, value)), |out, name, value| match name {
        "methods" => list(out, value, |out, method| match method {
            Value::Object(members) => {
                let said = members.iter().filter(|(name, value)| is_said(name, value));
                object(out, said, |out, name, value| match name {
                    "arguments" | "reply" | "error" | "stream" => of_schema(out, value),
                    _ => plain(out, value),
                });
            }
            other => plain(out, other),
        }),
        "$defs" => named(out, value),
        _ => plain(out, value),
    });
    out.into_bytes()
}

/// Whether a member of a description or a method counts.
fn is_said(name: &str, value: &Value) -> bool {
    name != "doc" && !value.is_null()
}

fn of_schema(out: &mut String, schema: &Value) {
    match schema {
        Value::Object(_) if schema::is_any(schema) => out.push_str("true"),
        Value::Object(keywords) => {
            let said = keywords.iter().filter(|(keyword, _)| !schema::is_annotation(keyword));
            object(out, said, |out, keyword, value| match schema::holds(keyword) {
                Holds::One => of_schema(out, value),
                Holds::List => list(out, value, of_schema),
                Holds::Named => named(out, value),
                Holds::Other => plain(out, value),
            });
        }
        other => plain(out, other),
    }
}

fn named(out: &mut String, schemas: &Value) {
    match schemas {
        Value::Object(schemas) => object(out, schemas.iter(), |out, _, schema| of_schema(out, schema)),
        other => plain(out, other),
    }
}

fn list(out: &mut String, values: &Value, write: impl Fn(&mut String, &Value)) {
    let Value::Array(values) = values else { return plain(out, values) };
    out.push('[');
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write(out, value);
    }
    out.push(']');
}

fn object<'a>(
    out: &mut String,
    members: impl Iterator<Item = (&'a String, &'a Value)>,
    write: impl Fn(&mut String, &str, &Value),
) {
    // `serde_json` sorts its objects unless some crate of the program asks it not to.
    let mut members: Vec<_> = members.collect();
    members.sort_unstable_by(|(one, _), (other, _)| one.as_bytes().cmp(other.as_bytes()));
    out.push('{');
    for (at, (name, value)) in members.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        text(out, name);
        out.push(':');
        write(out, name, value);
    }
    out.push('}');
}

fn plain(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(value) => out.push_str(&number(value)),
        Value::String(value) => text(out, value),
        Value::Array(_) => list(out, value, plain),
        Value::Object(members) => all(out, members),
    }
}

fn all(out: &mut String, members: &Map<String, Value>) {
    object(out, members.iter(), |out, _, value| plain(out, value));
}

fn number(value: &serde_json::Number) -> String {
    // serde_json reads nothing that is no number, as NaN.
    let nearest = value.as_f64().unwrap_or_default();
    #[allow(clippy::cast_possible_truncation)]
    match nearest.fract() == 0.0 && nearest.abs() <= WHOLE_MAX {
        true => (nearest as i64).to_string(),
        false => format!("\"f32:{:08x}\"", (nearest as f32).to_bits()),
    }
}

fn text(out: &mut String, value: &str) {
    // Writing text as JSON fails for no text.
    out.push_str(&serde_json::to_string(value).unwrap_or_default());
}

/// What all languages' numbers hold, and all libraries read exactly.
const WHOLE_MAX: f64 = (1_u64 << 48) as f64;
