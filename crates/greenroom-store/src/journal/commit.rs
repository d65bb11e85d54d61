//! What is committed together.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::Limits;
use crate::{Result, StoreError, Version, key};

/// Writes and appends that are applied together or not at all.
///
/// ```
/// use greenroom_store::Commit;
///
/// let move_money = Commit::new().put("account/ada", "90".into()).put("account/bob", "110".into());
/// assert_eq!(move_money.operations(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "it does nothing until a journal commits it"]
pub struct Commit {
    /// At most one for each key. Their order means nothing.
    pub writes: Vec<Write>,
    /// Those to one log get successive positions in this order.
    pub appends: Vec<Append>,
}

/// One write of a commit, or a condition of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Puts `value` under `key`; the condition is that nothing is there.
    Create {
        /// The key.
        key: String,
        /// What it will hold.
        value: Bytes,
    },
    /// Puts `value` under `key`; the condition is that `expected` is there.
    Replace {
        /// The key.
        key: String,
        /// What it will hold.
        value: Bytes,
        /// The version that must be there.
        expected: Version,
    },
    /// Removes `key`; the condition is that `expected` is there.
    Delete {
        /// The key.
        key: String,
        /// The version that must be there.
        expected: Version,
    },
    /// Puts `value` under `key`, whatever is there: for a writer that holds a fence.
    Put {
        /// The key.
        key: String,
        /// What it will hold.
        value: Bytes,
    },
    /// Removes `key`, whatever is there, also nothing: for a writer that holds a fence.
    Remove {
        /// The key.
        key: String,
    },
    /// Changes nothing; the condition is that `expected` is there: the fence. Its version stays, and commits that hold
    /// the same key do not refuse each other.
    Holds {
        /// The key.
        key: String,
        /// The version that must be there.
        expected: Version,
    },
}

impl Write {
    /// The key that it concerns.
    pub fn key(&self) -> &str {
        match self {
            Self::Create { key, .. }
            | Self::Replace { key, .. }
            | Self::Delete { key, .. }
            | Self::Put { key, .. }
            | Self::Remove { key }
            | Self::Holds { key, .. } => key,
        }
    }

    /// What the key will hold, if the write gives it a value.
    pub fn value(&self) -> Option<&Bytes> {
        match self {
            Self::Create { value, .. } | Self::Replace { value, .. } | Self::Put { value, .. } => Some(value),
            Self::Delete { .. } | Self::Remove { .. } | Self::Holds { .. } => None,
        }
    }

    /// The version that must be there, if it names one.
    pub fn expected(&self) -> Option<&Version> {
        match self {
            Self::Replace { expected, .. } | Self::Delete { expected, .. } | Self::Holds { expected, .. } => {
                Some(expected)
            }
            Self::Create { .. } | Self::Put { .. } | Self::Remove { .. } => None,
        }
    }
}

/// One entry for a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    /// The log's name.
    pub log: String,
    /// What it will hold at its next position.
    pub entry: Bytes,
}

impl Commit {
    /// A commit of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds [`Write::Create`].
    pub fn create(self, key: impl Into<String>, value: Bytes) -> Self {
        self.write(Write::Create { key: key.into(), value })
    }

    /// Adds [`Write::Replace`].
    pub fn replace(self, key: impl Into<String>, value: Bytes, expected: &Version) -> Self {
        self.write(Write::Replace { key: key.into(), value, expected: expected.clone() })
    }

    /// Adds [`Write::Delete`].
    pub fn delete(self, key: impl Into<String>, expected: &Version) -> Self {
        self.write(Write::Delete { key: key.into(), expected: expected.clone() })
    }

    /// Adds [`Write::Put`].
    pub fn put(self, key: impl Into<String>, value: Bytes) -> Self {
        self.write(Write::Put { key: key.into(), value })
    }

    /// Adds [`Write::Remove`].
    pub fn remove(self, key: impl Into<String>) -> Self {
        self.write(Write::Remove { key: key.into() })
    }

    /// Adds [`Write::Holds`].
    pub fn hold(self, key: impl Into<String>, expected: &Version) -> Self {
        self.write(Write::Holds { key: key.into(), expected: expected.clone() })
    }

    /// Adds `write`.
    pub fn write(mut self, write: Write) -> Self {
        self.writes.push(write);
        self
    }

    /// Adds an entry for the end of `log`.
    pub fn append(mut self, log: impl Into<String>, entry: Bytes) -> Self {
        self.appends.push(Append { log: log.into(), entry });
        self
    }

    /// Writes and appends together.
    pub fn operations(&self) -> usize {
        self.writes.len() + self.appends.len()
    }

    /// Bytes of all keys, log names, values and entries: what [`Limits::bytes_max`] bounds.
    pub fn bytes(&self) -> usize {
        let writes = self.writes.iter().map(|write| write.key().len() + write.value().map_or(0, Bytes::len));
        let appends = self.appends.iter().map(|append| append.log.len() + append.entry.len());
        writes.chain(appends).sum()
    }

    /// What errors about the whole commit name: its first changed key, or its first log, or what it holds.
    pub fn name(&self) -> &str {
        let changed = self.writes.iter().find(|write| !matches!(write, Write::Holds { .. })).map(Write::key);
        let appended = self.appends.first().map(|append| append.log.as_str());
        changed.or(appended).or_else(|| self.writes.first().map(Write::key)).unwrap_or_default()
    }

    /// Checks what every journal refuses before it begins: a provider calls it first. `store` is named in errors.
    ///
    /// # Errors
    ///
    /// [`StoreError::InvalidKey`] for a key or log name that not every engine holds, [`StoreError::TooLarge`] for a
    /// value or entry over [`Limits::value_bytes_max`], [`StoreError::InvalidCommit`] for a key that occurs twice, or
    /// for more than one commit may hold.
    pub fn check(&self, limits: &Limits, store: &str) -> Result<()> {
        let invalid = |reason: String| Err(StoreError::InvalidCommit { key: self.name().to_owned(), reason });
        let (operations, most) = (self.operations(), limits.operations_max);
        if operations > most {
            return invalid(format!("it has {operations} writes and appends, {store} takes at most {most}; split it"));
        }
        let mut keys = BTreeSet::new();
        for write in &self.writes {
            key::check(write.key())?;
            self.check_value(write.key(), write.value().map_or(0, Bytes::len), limits, store)?;
            if !keys.insert(write.key()) {
                return invalid(format!("key {:?} occurs in it twice; make its writes one", write.key()));
            }
        }
        for append in &self.appends {
            key::check(&append.log)?;
            self.check_value(&append.log, append.entry.len(), limits, store)?;
        }
        let (bytes, most) = (self.bytes(), limits.bytes_max);
        if bytes > most {
            return invalid(format!("it has {bytes} bytes, {store} takes at most {most}; split it"));
        }
        Ok(())
    }

    fn check_value(&self, key: &str, bytes: usize, limits: &Limits, store: &str) -> Result<()> {
        if bytes <= limits.value_bytes_max {
            return Ok(());
        }
        let (key, store) = (key.to_owned(), store.to_owned());
        Err(StoreError::TooLarge { key, store, bytes, bytes_max: limits.value_bytes_max })
    }
}
