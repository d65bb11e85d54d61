//! Why a document is no description.

/// Whoever wrote the document is at fault; nothing of it was taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It is longer than [`LEN_MAX`](crate::LEN_MAX).
    #[error("the description has {len} bytes; {max} are the most: leave out docs, or split the kind", max = crate::LEN_MAX)]
    TooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// It is not JSON, or nested deeper than a parser goes.
    #[error("the description is not JSON: {0}")]
    NotJson(#[source] serde_json::Error),
    /// It is written in a version of the format that this program does not read.
    #[error("the description is written in format {format}, and this program reads format {known}: use an SDK of its version", known = crate::FORMAT)]
    Format {
        /// What its member `greenroom` says.
        format: u64,
    },
    /// Something in it is not as it must be.
    #[error("the description is wrong at `{at}`: {why}")]
    Wrong {
        /// The path of it, such as `methods[2].arguments`.
        at: String,
        /// What is wrong with it, and what must be there.
        why: String,
    },
}

impl Error {
    pub(crate) fn wrong(at: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Wrong { at: at.into(), why: why.into() }
    }
}
