//! The scripts, and what they are asked and answer.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

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

/// Versions for what is written over one connection: none is given twice, whatever becomes of the server's data.
#[derive(Debug)]
pub(crate) struct Versions {
    /// Of this connection alone, by chance.
    mark: u64,
    next: AtomicU64,
}

impl Versions {
    /// Those of a new connection.
    pub(crate) fn new() -> Self {
        // Its keys are random in each process and differ from one state to the next.
        Self { mark: RandomState::new().hash_one(std::process::id()), next: AtomicU64::new(1) }
    }

    fn next(&self) -> Version {
        Version::new(format!("{:016x}.{}", self.mark, self.next.fetch_add(1, Ordering::Relaxed)))
    }
}

/// A call of the commit script for several commits.
pub(crate) fn commits(script: &Script, prefix: &str, calls: &[Call], commits: &[&Commit]) -> Cmd {
    let operations: usize = commits.iter().map(|commit| commit.operations()).sum();
    let bytes: usize = commits.iter().map(|commit| commit.bytes()).sum();
    let mut command = Cmd::with_capacity(5 + commits.len() * 2 + operations * 5, 128 + bytes + operations * 48);
    command.arg("EVALSHA").arg(&script.0).arg(1).arg(prefix).arg(commits.len());
    for (call, commit) in calls.iter().zip(commits) {
        call.add_to(&mut command, commit);
    }
    command
}

/// One commit's part of a call.
#[derive(Debug)]
pub(crate) struct Call {
    /// For each write the version that it gives.
    versions: Vec<Option<Version>>,
    /// For each write of the call its place in the commit: those that put come first.
    places: Vec<usize>,
}

impl Call {
    /// That of `commit`.
    pub(crate) fn new(versions: &Versions, commit: &Commit) -> Self {
        let mut places: Vec<usize> = (0..commit.writes.len()).collect();
        places.sort_by_key(|at| commit.writes[*at].value().is_none());
        Self { versions: commit.writes.iter().map(|write| write.value().map(|_| versions.next())).collect(), places }
    }

    fn add_to(&self, command: &mut Cmd, commit: &Commit) {
        command.arg(commit.writes.len()).arg(commit.appends.len());
        for at in &self.places {
            let write = &commit.writes[*at];
            let effect = match write {
                Write::Create { .. } | Write::Replace { .. } | Write::Put { .. } => PUT,
                Write::Delete { .. } | Write::Remove { .. } => REMOVE,
                Write::Holds { .. } => NOTHING,
            };
            let expected = match (write, write.expected()) {
                (_, Some(expected)) if expected.as_str().contains('.') => expected.as_str(),
                (_, Some(_)) => FOREIGN,
                (Write::Create { .. }, None) => ABSENT,
                (_, None) => ANYTHING,
            };
            command.arg(write.key()).arg(effect).arg(expected);
            if let (Some(version), Some(value)) = (&self.versions[*at], write.value()) {
                command.arg(version.as_str()).arg(&value[..]);
            }
        }
        for append in &commit.appends {
            command.arg(&append.log).arg(&append.entry[..]);
        }
    }

    /// What the script has answered to `commit`; `None` if it is no answer of that script.
    pub(crate) fn committed(self, commit: &Commit, answer: &Value) -> Option<Result<Committed>> {
        let positions = match answer {
            Value::Int(1) if commit.appends.is_empty() => Vec::new(),
            Value::Array(parts) => match &parts[..] {
                [Value::Int(at), Value::BulkString(_)] => {
                    let place = self.places.get(usize::try_from(*at).ok()?)?;
                    let (key, found) = (commit.writes[*place].key().to_owned(), text(&parts[1])?);
                    let found = if found == ABSENT { Found::Absent } else { Found::Version(Version::new(found)) };
                    return Some(Err(StoreError::Conflict { key, found }));
                }
                parts if parts.len() == commit.appends.len() => parts.iter().map(number).collect::<Option<_>>()?,
                _ => return None,
            },
            _ => return None,
        };
        Some(Ok(Committed { versions: self.versions, positions }))
    }
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

/// What the script calls the conditions that name no version, and one that no value has: versions hold a dot.
const ANYTHING: &str = "*";
const ABSENT: &str = "-";
const FOREIGN: &str = "?";
