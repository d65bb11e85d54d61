//! A description that was read, or made, and checked.

use std::fmt;
use std::ops::Deref;

use serde_json::Value;

use crate::canonical::{self, Digest};
use crate::contents::Contents;
use crate::difference::{self, Difference};
use crate::error::Error;
use crate::{FORMAT, LEN_MAX, check};

/// A description within all bounds, with its document as it was written and its digest.
#[derive(Clone)]
pub struct Description {
    contents: Contents,
    document: Value,
    digest: Digest,
}

impl Description {
    /// Reads what came from outside.
    ///
    /// # Errors
    /// What is wrong with it, with its path.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        match bytes.len() {
            len if len > LEN_MAX => Err(Error::TooLong { len }),
            _ => Self::of_document(serde_json::from_slice(bytes).map_err(Error::NotJson)?),
        }
    }

    /// Checks a document that this program has made.
    ///
    /// # Errors
    /// What is wrong with it, with its path.
    pub fn of_document(document: Value) -> Result<Self, Error> {
        check::depth(&document)?;
        match document.get("greenroom").map(Value::as_u64) {
            Some(Some(format)) if format == u64::from(FORMAT) => {}
            Some(Some(format)) => return Err(Error::Format { format }),
            _ => return Err(Error::wrong("greenroom", format!("write {FORMAT}, the version of the format"))),
        }
        let contents: Contents = serde_path_to_error::deserialize(&document)
            .map_err(|error| Error::wrong(error.path().to_string(), error.inner().to_string()))?;
        check::contents(&contents)?;
        let digest = canonical::digest(&document);
        Ok(Self { contents, document, digest })
    }

    /// Checks contents that this program has made, and writes their document.
    ///
    /// # Errors
    /// What is wrong with them, with its path.
    pub fn of(contents: &Contents) -> Result<Self, Error> {
        Self::of_document(serde_json::to_value(contents).map_err(Error::NotJson)?)
    }

    /// The document as it was written.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// The bytes that the digest is taken of: the same for all documents that say the same of a kind's interface. Without `doc`s
    /// and what annotates schemas, without members that are null, keys sorted, no spaces.
    pub fn canonical(&self) -> Vec<u8> {
        canonical::bytes(&self.document)
    }

    /// What the document is known by.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Where callers of `self` and of `other` would not understand each other, or the runtime would treat their actors differently;
    /// nothing if each may stand for the other. What one of them does not know (`true`) is no difference.
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        difference::between(&self.contents, &other.contents)
    }
}

impl Deref for Description {
    type Target = Contents;

    fn deref(&self) -> &Contents {
        &self.contents
    }
}

impl PartialEq for Description {
    /// By their digests.
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl fmt::Debug for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Description({} {})", self.contents.kind, self.digest)
    }
}
