//! What a conditional write is conditional on.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

/// The mark of one applied write of one key, never given to that key again. Opaque: only equality means anything.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(Arc<str>);

impl Version {
    /// The version that an engine spells `text`; for providers, and for versions that were stored or sent.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The engine's spelling.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version({})", self.0)
    }
}

/// A value with the version that the write of this value got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    /// What was written.
    pub value: Bytes,
    /// Expect this to replace or delete exactly this value.
    pub version: Version,
}
