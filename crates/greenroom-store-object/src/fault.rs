//! What an object store and the way to it say, sorted by what the caller must know.

use std::error::Error as _;

use greenroom_store::StoreError;
use object_store::client::{HttpError, HttpErrorKind};

/// Why a request has brought nothing.
#[derive(Debug)]
pub(crate) enum Failure {
    /// There is no such object.
    Absent,
    /// The condition of a write did not hold; nothing has changed.
    Condition,
    /// The request has not left this process, or was refused; nothing has changed.
    NotApplied(StoreError),
    /// The request may have been carried out, or may still be.
    Lost(String),
}

impl Failure {
    pub(crate) fn of(error: &object_store::Error, store: &str) -> Self {
        let text = chain(error);
        let store = store.to_owned();
        let mut causes = std::iter::successors(error.source(), |cause| (*cause).source());
        let unconnected = causes
            .any(|cause| cause.downcast_ref::<HttpError>().is_some_and(|error| error.kind() == HttpErrorKind::Connect));
        if unconnected {
            let reason = format!("{text}; see to its endpoint and whether it runs");
            return Self::NotApplied(StoreError::Unavailable { store, reason });
        }
        if text.contains("NoSuchBucket") {
            let reason =
                "there is no such bucket; create it, or see to the bucket and the region in its URL".to_owned();
            return Self::NotApplied(StoreError::Configuration { store, reason });
        }
        if ["NotImplemented", "status code: 501"].iter().any(|part| text.contains(part)) {
            let reason = format!("it does not know conditional writes: {text}");
            return Self::NotApplied(StoreError::Configuration { store, reason });
        }
        if ["StorageFull", "QuotaExceeded", "status code: 507"].iter().any(|part| text.contains(part)) {
            return Self::NotApplied(StoreError::Full { store, reason: text });
        }
        match error {
            object_store::Error::NotFound { .. } => Self::Absent,
            object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. } => Self::Condition,
            object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
                Self::NotApplied(StoreError::Denied { store, reason: format!("{text}; {RIGHTS}") })
            }
            // Wrong in itself: never begun.
            _ if text.contains("status code: 4") => {
                let reason = format!("the request is refused: {text}");
                Self::NotApplied(StoreError::Unavailable { store, reason })
            }
            _ if text.contains("credential") || text.contains("InstanceCredentials") => {
                Self::NotApplied(StoreError::Denied { store, reason: format!("{text}; {RIGHTS}") })
            }
            _ => Self::Lost(text),
        }
    }

    /// The error of a read in `store`.
    pub(crate) fn of_read(self, store: &str) -> StoreError {
        match self {
            Self::NotApplied(error) => error,
            Self::Lost(reason) => {
                StoreError::Unavailable { store: store.to_owned(), reason: format!("{reason}; ask again") }
            }
            Self::Absent | Self::Condition => {
                let reason = "it refuses a request that has no condition".to_owned();
                StoreError::Unavailable { store: store.to_owned(), reason }
            }
        }
    }
}

/// The error and what has caused it, each once, on one line.
fn chain(error: &object_store::Error) -> String {
    let mut text = error.to_string();
    for cause in std::iter::successors(error.source(), |cause| (*cause).source()) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    spoken(&text).unwrap_or(text)
}

/// Of an answer in XML, what it says to a human.
fn spoken(text: &str) -> Option<String> {
    let between = |tag: &str| text.split_once(&format!("<{tag}>"))?.1.split_once(&format!("</{tag}>"));
    let status = text.split_once("status code: ")?.1.get(..3)?;
    Some(format!("status code: {status}, {}: {}", between("Code")?.0, between("Message")?.0))
}

const RIGHTS: &str = "see to the keys, and let them s3:GetObject, s3:PutObject and s3:ListBucket";
