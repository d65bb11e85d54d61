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

/// A call of the commit script.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) command: Cmd,
    /// For each write the version that it gives.
    versions: Vec<Option<Version>>,
    /// For each write of the call its place in the commit.
    places: Vec<usize>,
}

impl Call {
    /// One that carries out `commit` in the store with this `prefix`.
    pub(crate) fn new(script: &Script, prefix: &str, versions: &Versions, commit: &Commit) -> Self {
        let mut command = Cmd::with_capacity(5 + commit.operations() * 5, commit.bytes() + 128);
        command.arg("EVALSHA").arg(&script.0).arg(1).arg(prefix).arg(commit.writes.len());
        let mut places: Vec<usize> = (0..commit.writes.len()).collect();
        places.sort_by_key(|at| commit.writes[*at].value().is_none());
        let given = commit.writes.iter().map(|write| write.value().map(|_| versions.next())).collect();
        let mut call = Self { command, versions: given, places };
        for at in &call.places {
            let write = &commit.writes[*at];
            call.command.arg(write.key());
            let effect = match write {
                Write::Create { .. } | Write::Replace { .. } | Write::Put { .. } => PUT,
                Write::Delete { .. } | Write::Remove { .. } => REMOVE,
                Write::Holds { .. } => NOTHING,
            };
            call.command.arg(effect);
            match (write, write.expected()) {
                (_, Some(expected)) => call.command.arg(format!("={expected}")),
                (Write::Create { .. }, None) => call.command.arg("-"),
                (_, None) => call.command.arg("*"),
            };
            if let (Some(version), Some(value)) = (&call.versions[*at], write.value()) {
                call.command.arg(version.as_str()).arg(&value[..]);
            }
        }
        for append in &commit.appends {
            call.command.arg(&append.log).arg(&append.entry[..]);
        }
        call
    }

    /// What the script has answered to this call for `commit`; `None` if it is no answer of that script.
    pub(crate) fn committed(self, commit: &Commit, answer: &[Value]) -> Option<Result<Committed, Refusal>> {
        match answer {
            [Value::BulkString(said), at, found] if said == b"conflict" => {
                let place = self.places.get(usize::try_from(number(at)?).ok()?)?;
                let (key, found) = (commit.writes[*place].key().to_owned(), text(found)?);
                let found = if found == "-" { Found::Absent } else { Found::Version(Version::new(found)) };
                Some(Err(Refusal::Conflict(StoreError::Conflict { key, found })))
            }
            [Value::BulkString(said), found] if said == b"format" => Some(Err(Refusal::Format(text(found)?))),
            positions if positions.len() == commit.appends.len() => {
                let positions = positions.iter().map(number).collect::<Option<_>>()?;
                Some(Ok(Committed { versions: self.versions, positions }))
            }
            _ => None,
        }
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
