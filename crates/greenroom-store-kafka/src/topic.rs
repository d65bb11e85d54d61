//! A topic as an outlet: where outputs of reliable actors go.

use std::time::Duration;

use futures_util::future::BoxFuture;
use greenroom_store::url::Remote;
use greenroom_store::{Outlet, Output, Result, StoreError, Undelivered};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::types::RDKafkaErrorCode;

use crate::clients;
use crate::settings::Settings;

/// Puts each output into a topic: its body under the key of the actor, which keeps an actor's outputs in one partition and
/// in their order, with its own key in the header `idempotency-key`.
pub struct KafkaTopic {
    name: String,
    topic: String,
    producer: FutureProducer,
}

impl KafkaTopic {
    /// The topic that the path of `remote` names. It must be there; nothing is asked of the brokers yet.
    ///
    /// # Errors
    ///
    /// [`StoreError::Configuration`] if the URL names none.
    pub fn open_remote(remote: &Remote) -> Result<Self> {
        let settings = Settings::of_topic(remote)?;
        let mut config = clients::common(&settings);
        config.set("enable.idempotence", "true").set("acks", "all").set("message.timeout.ms", "10000");
        let wrong = |error: rdkafka::error::KafkaError| StoreError::Unavailable {
            store: settings.name.clone(),
            reason: error.to_string(),
        };
        let producer = config.create().map_err(wrong)?;
        Ok(Self { name: settings.name, topic: settings.prefix, producer })
    }
}

impl Outlet for KafkaTopic {
    fn deliver(&self, output: Output) -> BoxFuture<'_, std::result::Result<(), Undelivered>> {
        Box::pin(async move {
            let key = Header { key: "idempotency-key", value: Some(output.key.as_str()) };
            let record = FutureRecord::to(&self.topic).key(&output.from).payload(&output.body[..]);
            let sent = self.producer.send(record.headers(OwnedHeaders::new().insert(key)), QUEUE).await;
            sent.map(drop).map_err(|(error, _)| {
                let said = format!("{}: {error}", self.name);
                match error.rdkafka_error_code() {
                    Some(RDKafkaErrorCode::MessageSizeTooLarge) => Undelivered::Refused(said),
                    _ => Undelivered::Unavailable(said),
                }
            })
        })
    }
}

impl std::fmt::Debug for KafkaTopic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KafkaTopic").field("name", &self.name).finish_non_exhaustive()
    }
}

/// How long an output waits for room among those on their way.
const QUEUE: Duration = Duration::from_secs(5);
