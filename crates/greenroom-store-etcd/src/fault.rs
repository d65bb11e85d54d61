//! What etcd and the connection to it say, sorted by what the caller must know.

use std::error::Error;

use greenroom_store::StoreError;
use tonic::{Code, ConnectError, Status};

/// Why a call has brought no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The call has not left this process.
    NotSent(String),
    /// The call may have reached etcd, and may have had an effect.
    Lost(String),
    /// Time ran out; `sent` tells whether the call may have reached etcd.
    Late { sent: bool },
    /// etcd has refused it; nothing has changed.
    Refused(Code, String),
    /// The user or the certificate is refused; nothing has changed.
    Denied(String),
    /// The password cannot be had.
    NoPassword(StoreError),
}

impl Failure {
    pub(crate) fn of(status: &Status) -> Self {
        let message = chain(status);
        if causes(status).any(|cause| cause.is::<ConnectError>()) {
            return if message.contains("ertificate") { Self::Denied(message) } else { Self::NotSent(message) };
        }
        match status.code() {
            // etcd does not begin what it answers so. A change of leaders or a time-out of its own is "Unavailable",
            // and may have been applied.
            Code::InvalidArgument if message.contains("authentication failed") || message.contains("user name") => {
                Self::Denied(message)
            }
            Code::PermissionDenied | Code::Unauthenticated => Self::Denied(message),
            Code::InvalidArgument
            | Code::ResourceExhausted
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::NotFound
            | Code::Unimplemented => Self::Refused(status.code(), message),
            // A server that wants another certificate may say so only after it has answered the client's greeting.
            _ if message.contains("fatal alert: ") && message.contains("ertificate") => Self::Denied(message),
            _ => Self::Lost(message),
        }
    }

    /// Whether etcd no longer knows the token that came with the call: it has been restarted, the token has grown old,
    /// or users have changed.
    pub(crate) fn is_about_token(&self) -> bool {
        match self {
            Self::Denied(message) => message.contains("invalid auth token"),
            Self::Refused(_, message) => message.contains("revision of auth store is old"),
            _ => false,
        }
    }

    /// Whether the answer was longer than its reader takes.
    pub(crate) fn is_long_answer(&self) -> bool {
        matches!(self, Self::Refused(Code::OutOfRange, _))
    }

    /// The error of a read under `key`, in the store called `store`, whose keys in etcd begin with `root`.
    pub(crate) fn of_read(self, store: &str, root: &str, key: &str) -> StoreError {
        match self {
            Self::Lost(reason) => {
                StoreError::Unavailable { store: store.to_owned(), reason: format!("{reason}; ask again") }
            }
            Self::Late { .. } => {
                let reason = "its timeout ended; allow more time or see whether etcd has a leader".to_owned();
                StoreError::NotApplied { key: key.to_owned(), reason }
            }
            other => other.of_write(store, root, key, 0),
        }
    }

    /// The error of a write of `bytes` under `key`, in the store called `store`, whose keys in etcd begin with `root`.
    pub(crate) fn of_write(self, store: &str, root: &str, key: &str, bytes: usize) -> StoreError {
        let (store, key) = (store.to_owned(), key.to_owned());
        match self {
            Self::NotSent(reason) => {
                let reason = format!("{reason}; see whether etcd runs and listens there");
                StoreError::Unavailable { store, reason }
            }
            Self::Lost(reason) => StoreError::Unknown { key, reason },
            Self::Late { sent: true } => StoreError::Unknown { key, reason: "no answer came in time".to_owned() },
            Self::Late { sent: false } => {
                let reason = "its timeout ended before it was sent; allow more time".to_owned();
                StoreError::NotApplied { key, reason }
            }
            Self::NoPassword(error) => error,
            Self::Denied(reason) => {
                let remedy = if reason.contains("permission denied") {
                    format!("run `etcdctl role grant-permission ROLE readwrite --prefix=true {root}`")
                } else if reason.contains("ertificate") {
                    "see to ca=FILE, cert=FILE and key=FILE in its URL".to_owned()
                } else {
                    "see to the user and the password in its URL".to_owned()
                };
                StoreError::Denied { store, reason: format!("{reason}; {remedy}") }
            }
            Self::Refused(_, reason) if reason.contains("too large") || reason.contains("larger than max") => {
                // The server's limit is lower than the one that the URL tells of; how low, it does not say.
                StoreError::TooLarge { key, store, bytes, bytes_max: bytes.saturating_sub(1) }
            }
            Self::Refused(_, reason) if reason.contains("database space exceeded") => {
                let reason =
                    format!("{reason}: compact, defragment, `etcdctl alarm disarm`, raise --quota-backend-bytes");
                StoreError::Full { store, reason }
            }
            Self::Refused(_, reason) if reason.contains("too many operations") => {
                let reason = format!("{reason}; raise --max-txn-ops or say operations_max=N in the URL");
                StoreError::InvalidCommit { key, reason }
            }
            Self::Refused(_, reason) if reason.contains("authentication is not enabled") => {
                let reason = format!("{reason}: enable it there or leave the user out of the URL");
                StoreError::Configuration { store, reason }
            }
            Self::Refused(_, reason) => StoreError::NotApplied { key, reason: format!("etcd refuses it: {reason}") },
        }
    }
}

fn causes(status: &Status) -> impl Iterator<Item = &(dyn Error + 'static)> {
    let mut next = status.source();
    std::iter::from_fn(move || {
        let cause = next?;
        next = cause.source();
        Some(cause)
    })
}

/// The status and what has caused it, each once.
fn chain(status: &Status) -> String {
    let mut text = status.message().to_owned();
    for cause in causes(status) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text = if text.is_empty() { cause } else { format!("{text}: {cause}") };
        }
    }
    if text.is_empty() { status.code().description().to_owned() } else { text }
}
