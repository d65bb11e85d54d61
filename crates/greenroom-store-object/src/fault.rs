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
    /// Sorts by what the server has answered, and never by words that a key may hold.
    pub(crate) fn of(error: &object_store::Error, store: &str) -> Self {
        let (text, store) = (chain(error), store.to_owned());
        // Where a machine on AWS asks for its credentials; no name of an object holds this.
        if text.contains(METADATA_SERVICE) {
            let reason = format!("no keys are found in its URL or the environment; {RIGHTS}");
            return Self::NotApplied(StoreError::Denied { store, reason });
        }
        let mut causes = std::iter::successors(error.source(), |cause| (*cause).source());
        let unconnected = causes
            .any(|cause| cause.downcast_ref::<HttpError>().is_some_and(|error| error.kind() == HttpErrorKind::Connect));
        if unconnected {
            let reason = format!("{text}; see to its endpoint and whether it runs");
            return Self::NotApplied(StoreError::Unavailable { store, reason });
        }
        let Some(Answer { status, code, text }) = Answer::of(&text) else { return Self::Lost(text) };
        match (status, code.as_str()) {
            (_, "NoSuchBucket") => {
                let reason = "there is no such bucket; create it, or see to the bucket and the region in its URL";
                Self::NotApplied(StoreError::Configuration { store, reason: reason.to_owned() })
            }
            (501, _) => {
                let reason = format!("it does not know conditional writes: {text}");
                Self::NotApplied(StoreError::Configuration { store, reason })
            }
            (507, _) | (_, "XMinioStorageFull" | "QuotaExceeded" | "XMinioAdminBucketQuotaExceeded") => {
                Self::NotApplied(StoreError::Full { store, reason: text })
            }
            (404, _) => Self::Absent,
            (304 | 409 | 412, _) => Self::Condition,
            (401 | 403, _) => Self::NotApplied(StoreError::Denied { store, reason: format!("{text}; {RIGHTS}") }),
            // Wrong in itself, or too much at once: never begun.
            (300..=499, _) => {
                let reason = format!("the request is refused: {text}");
                Self::NotApplied(StoreError::Unavailable { store, reason })
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
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a server has answered.
struct Answer {
    status: u16,
    /// S3's name for what is wrong; empty if the answer is none of S3's.
    code: String,
    /// For a human.
    text: String,
}

impl Answer {
    /// As the client tells of it. Its words hold spaces, which no URL does.
    fn of(text: &str) -> Option<Self> {
        let status = text.split_once("status code: ")?.1.get(..3)?.parse().ok()?;
        let between = |tag: &str| Some(text.split_once(&format!("<{tag}>"))?.1.split_once(&format!("</{tag}>"))?.0);
        let code = between("Code").unwrap_or_default().to_owned();
        let text = match between("Message") {
            Some(message) => format!("status code: {status}, {code}: {message}"),
            None => text.to_owned(),
        };
        Some(Self { status, code, text })
    }
}

const METADATA_SERVICE: &str = "169.254.169.254";

const RIGHTS: &str = "see to the keys, and let them s3:GetObject, s3:PutObject and s3:ListBucket";

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(text: &str) -> object_store::Error {
        object_store::Error::Generic { store: "S3", source: text.into() }
    }

    #[test]
    fn words_in_a_keys_name_do_not_make_a_lost_write_a_refused_one() {
        for name in ["NoSuchBucket", "credential", "StorageFull", "QuotaExceeded", "NotImplemented"] {
            let error = generic(&format!("Error performing PUT http://host/b/k/{name}! in 1s - HTTP error: it broke"));
            assert!(matches!(Failure::of(&error, "s3://b"), Failure::Lost(_)), "{name}");
        }
    }

    #[test]
    fn a_server_in_trouble_may_have_written_and_one_that_is_full_has_not() {
        let answer = |status, code| {
            let said = format!("<Error><Code>{code}</Code><Message>It says so</Message></Error>");
            Failure::of(&generic(&format!("Server returned non-2xx status code: {status} X: {said}")), "s3://b")
        };
        assert!(matches!(answer(503, "SlowDown"), Failure::Lost(_)));
        assert!(matches!(answer(500, "InternalError"), Failure::Lost(_)));
        assert!(matches!(answer(507, "XMinioStorageFull"), Failure::NotApplied(StoreError::Full { .. })));
        assert!(matches!(answer(404, "NoSuchBucket"), Failure::NotApplied(StoreError::Configuration { .. })));
        assert!(matches!(answer(404, "NoSuchKey"), Failure::Absent));
        assert!(matches!(answer(412, "PreconditionFailed"), Failure::Condition));
        assert!(matches!(answer(501, "NotImplemented"), Failure::NotApplied(StoreError::Configuration { .. })));
    }
}
