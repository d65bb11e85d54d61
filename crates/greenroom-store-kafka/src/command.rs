//! What is written into the topic of commits: one record a commit, so that it is there whole or not at all.

use bytes::Bytes;
use greenroom_store::journal::{Append, Write};
use greenroom_store::{Commit, Version};
use serde::{Deserialize, Serialize};

/// Who wrote a record, and its number: tells the answer to whom it belongs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(crate) struct Id {
    /// An opening of the journal, drawn by chance.
    pub(crate) writer: u64,
    pub(crate) serial: u64,
}

/// A record.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Command {
    pub(crate) id: Id,
    pub(crate) order: Order,
}

/// What it orders. Carried out by every reader in the order of the records, each time with the same outcome.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    Commit {
        writes: Vec<Written>,
        appends: Vec<(String, Value)>,
    },
    Trim {
        log: String,
        through: u64,
    },
    /// The writer is about to write a checkpoint of what is there now; an earlier claim is void.
    Claim,
    /// The checkpoint of the claim at this offset is written.
    Checkpointed {
        claim: i64,
    },
}

/// One write, as [`Write`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Written {
    Create(String, Value),
    Replace(String, Value, String),
    Delete(String, String),
    Put(String, Value),
    Remove(String),
    Holds(String, String),
}

/// Bytes, as such.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Value(#[serde(with = "serde_bytes")] pub(crate) Vec<u8>);

/// Why a record cannot be carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Unreadable {
    /// Of a format that is not known.
    Newer(u8),
    /// No record of this journal.
    Foreign(String),
}

impl Order {
    pub(crate) fn commit(commit: &Commit) -> Self {
        let value = |bytes: &Bytes| Value(bytes.to_vec());
        let writes = commit.writes.iter().map(|write| match write {
            Write::Create { key, value: new } => Written::Create(key.clone(), value(new)),
            Write::Replace { key, value: new, expected } => {
                Written::Replace(key.clone(), value(new), expected.as_str().to_owned())
            }
            Write::Delete { key, expected } => Written::Delete(key.clone(), expected.as_str().to_owned()),
            Write::Put { key, value: new } => Written::Put(key.clone(), value(new)),
            Write::Remove { key } => Written::Remove(key.clone()),
            Write::Holds { key, expected } => Written::Holds(key.clone(), expected.as_str().to_owned()),
        });
        let appends = commit.appends.iter().map(|Append { log, entry }| (log.clone(), value(entry)));
        Self::Commit { writes: writes.collect(), appends: appends.collect() }
    }
}

impl Written {
    pub(crate) fn key(&self) -> &str {
        match self {
            Self::Create(key, _)
            | Self::Replace(key, ..)
            | Self::Delete(key, _)
            | Self::Put(key, _)
            | Self::Remove(key)
            | Self::Holds(key, _) => key,
        }
    }

    /// The version that must be there, if it names one.
    pub(crate) fn expected(&self) -> Option<Version> {
        match self {
            Self::Replace(_, _, expected) | Self::Delete(_, expected) | Self::Holds(_, expected) => {
                Some(Version::new(expected.clone()))
            }
            Self::Create(..) | Self::Put(..) | Self::Remove(_) => None,
        }
    }
}

impl Command {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![FORMAT];
        rmp_serde::encode::write(&mut out, self).expect("a command has nothing that has no encoding");
        out
    }

    /// # Errors
    /// [`Unreadable`].
    pub(crate) fn decode(record: &[u8]) -> Result<Self, Unreadable> {
        match record.split_first() {
            Some((&FORMAT, rest)) => {
                rmp_serde::from_slice(rest).map_err(|error| Unreadable::Foreign(error.to_string()))
            }
            Some((&newer, _)) if newer > FORMAT => Err(Unreadable::Newer(newer)),
            _ => Err(Unreadable::Foreign("it has no format".to_owned())),
        }
    }
}

/// The format of all records that this program writes.
pub(crate) const FORMAT: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_read_as_it_was_written_and_a_newer_one_named() {
        let commit = Commit::new().create("a", "1".into()).hold("f", &Version::new("7-0".to_owned()));
        let order = Order::commit(&commit.remove("gone").append("log", Bytes::from_static(&[0, 255])));
        let command = Command { id: Id { writer: 1, serial: 2 }, order };
        let mut record = command.encode();
        assert_eq!(Command::decode(&record), Ok(command));
        record[0] = FORMAT + 1;
        assert_eq!(Command::decode(&record), Err(Unreadable::Newer(FORMAT + 1)));
        for foreign in [&b""[..], b"\0x", b"\x01x"] {
            assert!(matches!(Command::decode(foreign), Err(Unreadable::Foreign(_))), "{foreign:?}");
        }
    }
}
