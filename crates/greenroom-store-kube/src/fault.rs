//! What the API server and the way to it say, sorted by what the caller must know.

use std::error::Error as _;

use greenroom_store::StoreError;
use http::StatusCode;
use serde::Deserialize;

use crate::record::{GROUP, PLURAL};

/// Why a request has brought no object.
#[derive(Debug)]
pub(crate) enum Failure {
    /// There is no such object.
    Absent,
    /// The condition of a write did not hold; nothing has changed.
    Condition,
    /// A list is too old to go on: it must begin anew.
    Expired,
    /// The object is larger than the API server or its etcd takes; nothing has changed.
    TooLarge,
    /// The request has not left this process, or was refused; nothing has changed.
    NotApplied(StoreError),
    /// The request may have been carried out, or may still be.
    Lost(String),
}

/// What an API server answers instead of an object.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    message: String,
    reason: String,
}

impl Failure {
    /// What an answer that is no success means; `name` is the object's, and empty for a list.
    pub(crate) fn of_answer(status: StatusCode, body: &[u8], name: &str, namespace: &str, store: &str) -> Self {
        let store = store.to_owned();
        let parsed: Status = serde_json::from_slice(body).unwrap_or_default();
        let text = if parsed.message.is_empty() {
            format!("{status}: {}", String::from_utf8_lossy(body).chars().take(TEXT_CHARS_MAX).collect::<String>())
        } else {
            parsed.message
        };
        match status {
            // A server that does not know the kind says so without naming the object.
            StatusCode::NOT_FOUND if !name.is_empty() && parsed.reason == "NotFound" && text.contains(name) => {
                Self::Absent
            }
            StatusCode::NOT_FOUND => {
                let reason = format!(
                    "{text}; apply Greenroom's CustomResourceDefinition to the cluster, and see that the namespace \
                     {namespace:?} is there"
                );
                Self::NotApplied(StoreError::Configuration { store, reason })
            }
            StatusCode::CONFLICT => Self::Condition,
            StatusCode::GONE => Self::Expired,
            StatusCode::PAYLOAD_TOO_LARGE => Self::TooLarge,
            StatusCode::INTERNAL_SERVER_ERROR if text.contains("too large") || text.contains("larger than max") => {
                Self::TooLarge
            }
            StatusCode::INTERNAL_SERVER_ERROR if text.contains("database space exceeded") => {
                Self::NotApplied(StoreError::Full { store, reason: text })
            }
            StatusCode::UNAUTHORIZED => {
                let reason = format!("{text}; see to the token or the certificate in the kubeconfig");
                Self::NotApplied(StoreError::Denied { store, reason })
            }
            StatusCode::FORBIDDEN => {
                let reason = format!(
                    "{text}; give its service account a Role, `kubectl create role greenroom-store -n {namespace} \
                     --verb=get,list,create,update,delete --resource={PLURAL}.{GROUP}`, and a RoleBinding to it"
                );
                Self::NotApplied(StoreError::Denied { store, reason })
            }
            StatusCode::TOO_MANY_REQUESTS => {
                let reason = format!("{text}; ask again later and more slowly");
                Self::NotApplied(StoreError::Unavailable { store, reason })
            }
            status if status.is_client_error() => {
                let reason = format!("it refuses the request: {text}");
                Self::NotApplied(StoreError::Configuration { store, reason })
            }
            _ => Self::Lost(text),
        }
    }

    /// What it means that there was no answer.
    pub(crate) fn of_error(error: &kube::Error, store: &str) -> Self {
        let mut text = error.to_string();
        let mut unsent = matches!(error, kube::Error::Auth(_));
        for cause in std::iter::successors(error.source(), |cause| (*cause).source()) {
            let client = cause.downcast_ref::<hyper_util::client::legacy::Error>();
            unsent |= client.is_some_and(hyper_util::client::legacy::Error::is_connect);
            let cause = cause.to_string();
            if !text.contains(&cause) {
                text = format!("{text}: {cause}");
            }
        }
        let store = store.to_owned();
        match (unsent, error) {
            (true, kube::Error::Auth(_)) => Self::NotApplied(StoreError::Denied { store, reason: text }),
            (true, _) if text.contains("ertificate") => {
                let reason = format!("{text}; see to the certificate-authority in the kubeconfig");
                Self::NotApplied(StoreError::Denied { store, reason })
            }
            (true, _) => {
                let reason = format!("{text}; see whether the API server runs and can be reached");
                Self::NotApplied(StoreError::Unavailable { store, reason })
            }
            (false, _) => Self::Lost(text),
        }
    }

    /// The error of a read in `store`.
    pub(crate) fn of_read(self, store: &str) -> StoreError {
        let reason = match self {
            Self::NotApplied(error) => return error,
            Self::Lost(reason) => format!("{reason}; ask again"),
            Self::Expired => "the list that it gave has expired; ask again".to_owned(),
            Self::Absent | Self::Condition | Self::TooLarge => {
                "it answers a read as if it were a write; see what stands before it".to_owned()
            }
        };
        StoreError::Unavailable { store: store.to_owned(), reason }
    }
}

/// Of an answer that is none of an API server's.
const TEXT_CHARS_MAX: usize = 200;
