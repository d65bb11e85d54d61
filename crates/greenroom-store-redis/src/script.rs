//! The scripts, and what they are asked and answer.

use bytes::Bytes;
use greenroom_store::journal::{Committed, Write};
use greenroom_store::{Commit, Found, Result, StoreError, Version};
use redis::{Cmd, Value};

/// A script in the server's cache, called by its hash.
#[derive(Clone, Debug)]
pub(crate) struct Script(pub(crate) String);

impl Script {
    /// A call of it on `key`.
    pub(crate) fn call(&self, key: &str) -> Cmd {
        let mut call = redis::cmd("EVALSHA");
        call.arg(&self.0).arg(1).arg(key);
        call
    }
}

/// The arguments of the commit script: versions that it gives end with `ending`.
pub(crate) fn commit(script: &Script, prefix: &str, ending: &str, commit: &Commit) -> Cmd {
    let mut call = script.call(prefix);
    call.arg(ending).arg(commit.writes.len());
    for write in &commit.writes {
        let (effect, expected) = match write {
            Write::Create { .. } => (PUT, "-".to_owned()),
            Write::Replace { expected, .. } => (PUT, format!("={expected}")),
            Write::Delete { expected, .. } => (REMOVE, format!("={expected}")),
            Write::Put { .. } => (PUT, "*".to_owned()),
            Write::Remove { .. } => (REMOVE, "*".to_owned()),
            Write::Holds { expected, .. } => (NOTHING, format!("={expected}")),
        };
        let value = write.value().map(Bytes::as_ref).unwrap_or_default();
        call.arg(write.key()).arg(effect).arg(expected).arg(value);
    }
    for append in &commit.appends {
        call.arg(&append.log).arg(&append.entry[..]);
    }
    call
}

/// What the commit script has answered to `commit`; `None` if it is no answer of that script.
pub(crate) fn committed(commit: &Commit, answer: &[Value]) -> Option<Result<Committed, Refusal>> {
    let (said, rest) = answer.split_first()?;
    match (text(said)?.as_str(), rest) {
        ("ok", rest) if rest.len() == commit.operations() => {
            let (versions, positions) = rest.split_at(commit.writes.len());
            let version = |value: &Value| Some(text(value).filter(|text| !text.is_empty()).map(Version::new));
            Some(Ok(Committed {
                versions: versions.iter().map(version).collect::<Option<_>>()?,
                positions: positions.iter().map(number).collect::<Option<_>>()?,
            }))
        }
        ("conflict", [at, found]) => {
            let key = commit.writes.get(usize::try_from(number(at)?).ok()?)?.key().to_owned();
            let found = text(found)?;
            let found = if found == "-" { Found::Absent } else { Found::Version(Version::new(found)) };
            Some(Err(Refusal::Conflict(StoreError::Conflict { key, found })))
        }
        ("format", [found]) => Some(Err(Refusal::Format(text(found)?))),
        _ => None,
    }
}

/// Why the script has changed nothing.
#[derive(Debug)]
pub(crate) enum Refusal {
    Conflict(StoreError),
    /// The format that is there; empty if there is none.
    Format(String),
}

/// `value` as text.
pub(crate) fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        Value::SimpleString(text) => Some(text.clone()),
        Value::Okay => Some("OK".to_owned()),
        _ => None,
    }
}

/// `value` as a number.
pub(crate) fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        _ => text(value)?.parse().ok(),
    }
}

/// `value` as bytes.
pub(crate) fn bytes(value: Value) -> Option<Bytes> {
    match value {
        Value::BulkString(bytes) => Some(bytes.into()),
        _ => None,
    }
}

pub(crate) const COMMIT: &str = include_str!("commit.lua");
pub(crate) const SCAN: &str = include_str!("scan.lua");
pub(crate) const ENTRIES: &str = include_str!("entries.lua");
pub(crate) const PROBE: &str = include_str!("probe.lua");

const NOTHING: u8 = 0;
const PUT: u8 = 1;
const REMOVE: u8 = 2;
