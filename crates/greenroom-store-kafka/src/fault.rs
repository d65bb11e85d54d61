//! What Kafka's errors mean to a caller.

use greenroom_store::StoreError;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::command::{FORMAT, Unreadable};

/// The error of something without an effect, or whose effect nobody waits for.
pub(crate) fn without_effect(store: &str, error: &KafkaError) -> StoreError {
    let (store, reason) = (store.to_owned(), error.to_string());
    match error.rdkafka_error_code() {
        Some(
            RDKafkaErrorCode::TopicAuthorizationFailed
            | RDKafkaErrorCode::ClusterAuthorizationFailed
            | RDKafkaErrorCode::TransactionalIdAuthorizationFailed,
        ) => StoreError::Denied { store, reason },
        _ => StoreError::Unavailable { store, reason },
    }
}

/// The error of a record that was not taken, or of which nobody knows.
pub(crate) fn of_record(store: &str, key: &str, error: &KafkaError) -> StoreError {
    let (key, reason) = (key.to_owned(), error.to_string());
    match error.rdkafka_error_code() {
        // They never left this process.
        Some(RDKafkaErrorCode::QueueFull) => StoreError::NotApplied { key, reason },
        Some(RDKafkaErrorCode::MessageSizeTooLarge | RDKafkaErrorCode::InvalidMessageSize) => {
            let reason = format!("{reason}; raise max.message.bytes of the topics, or split it");
            StoreError::InvalidCommit { key, reason }
        }
        Some(RDKafkaErrorCode::TopicAuthorizationFailed) => StoreError::Denied { store: store.to_owned(), reason },
        // The broker says so before it writes anything.
        Some(RDKafkaErrorCode::NotEnoughReplicas) => StoreError::NotApplied { key, reason },
        _ => StoreError::Unknown { key, reason },
    }
}

/// The error of all that is asked of a slice in which there is a record that cannot be carried out.
pub(crate) fn unreadable(store: &str, topic: &str, partition: i32, offset: i64, why: &Unreadable) -> StoreError {
    let place = format!("the record at {topic}/{partition}:{offset}");
    let reason = match why {
        Unreadable::Newer(format) => {
            format!("{place} has format {format}, this program knows {FORMAT}; use the newer Greenroom that wrote it")
        }
        Unreadable::Foreign(why) => {
            format!("{place} is none of Greenroom's ({why}); give the journal topics that nobody else writes to")
        }
    };
    StoreError::Format { store: store.to_owned(), reason }
}
