//! How clients of Kafka are set.

use std::sync::Arc;

use greenroom_store::{Result, StoreError};
use rdkafka::ClientConfig;
use rdkafka::ClientContext;
use rdkafka::consumer::BaseConsumer;
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseProducer, ProducerContext, ThreadedProducer};

use crate::settings::Settings;
use crate::state::Shared;
use crate::{RECORD_BYTES_MAX, fault};

/// Told of what becomes of records.
pub(crate) struct Reports(Arc<Shared>);

pub(crate) type Writer = ThreadedProducer<Reports>;

impl ClientContext for Reports {}

impl ProducerContext for Reports {
    /// The slice and the serial, as one number; 0 for a record that nobody waits for.
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, opaque: usize) {
        // Of one that was taken, its coming back is the news.
        let Err((error, _)) = result else { return };
        let Some((slice, serial)) = parts(opaque, self.0.slices()) else { return };
        let waiting = self.0.slice(slice).answers.remove(&serial);
        if let Some(waiting) = waiting {
            // An error means that it has given up.
            let _ = waiting.answer.send(Err(fault::of_record(&self.0.settings.name, &waiting.key, error)));
        }
    }
}

/// A record's slice and serial as one number.
pub(crate) fn opaque(slice: i32, serial: u64, slices: i32) -> usize {
    (serial * u64::from(slices.cast_unsigned()) + u64::from(slice.cast_unsigned())) as usize
}

fn parts(opaque: usize, slices: i32) -> Option<(i32, u64)> {
    let slices = slices.cast_unsigned() as usize;
    // Serials begin at 1.
    (opaque >= slices).then(|| ((opaque % slices) as i32, (opaque / slices) as u64))
}

/// Writes commits: all replicas in reach have each record once, in the order in which it was handed in.
pub(crate) fn writer(shared: &Arc<Shared>) -> Result<Writer> {
    let mut config = common(&shared.settings);
    config.set("enable.idempotence", "true").set("acks", "all").set("linger.ms", "0");
    config.set("message.timeout.ms", "10000").set("message.max.bytes", RECORD_BYTES_MAX.to_string());
    config.set("queue.buffering.max.kbytes", "262144");
    made(&shared.settings, config.create_with_context(Reports(shared.clone())))
}

/// Writes the checkpoints of one slice; a later one with the same id fences it.
pub(crate) fn checkpointer(settings: &Settings, slice: i32) -> Result<BaseProducer> {
    let mut config = common(settings);
    config.set("transactional.id", format!("{}-{slice}", settings.states()));
    config.set("transaction.timeout.ms", "60000").set("message.max.bytes", RECORD_BYTES_MAX.to_string());
    made(settings, config.create())
}

/// Reads partitions that it is given: no group is made of it.
pub(crate) fn reader(settings: &Settings, committed: bool) -> Result<BaseConsumer> {
    let mut config = common(settings);
    // Needed by the client, and joined by nobody.
    config.set("group.id", &settings.prefix).set("enable.auto.commit", "false");
    config.set("enable.auto.offset.store", "false").set("auto.offset.reset", "error");
    config.set("isolation.level", if committed { "read_committed" } else { "read_uncommitted" });
    config.set("enable.partition.eof", if committed { "true" } else { "false" });
    config.set("fetch.message.max.bytes", (RECORD_BYTES_MAX + FETCH_OVERHEAD).to_string());
    config.set("fetch.max.bytes", (2 * RECORD_BYTES_MAX).to_string());
    config.set("receive.message.max.bytes", (4 * RECORD_BYTES_MAX).to_string());
    config.set("fetch.error.backoff.ms", "50").set("queued.max.messages.kbytes", "65536");
    made(settings, config.create())
}

/// What all have in common.
pub(crate) fn common(settings: &Settings) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &settings.brokers).set("client.id", "greenroom");
    config.set("allow.auto.create.topics", "false").set("socket.nagle.disable", "true");
    config.set("reconnect.backoff.ms", "50").set("reconnect.backoff.max.ms", "500");
    config.set("retry.backoff.ms", "50").set("socket.timeout.ms", "10000");
    config
}

fn made<T>(settings: &Settings, client: rdkafka::error::KafkaResult<T>) -> Result<T> {
    client.map_err(|error| StoreError::Unavailable { store: settings.name.clone(), reason: error.to_string() })
}

const FETCH_OVERHEAD: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_found_again_by_its_number() {
        for (slice, serial) in [(0, 1), (15, 1), (3, 1 << 40)] {
            assert_eq!(parts(opaque(slice, serial, 16), 16), Some((slice, serial)));
        }
        assert_eq!(parts(0, 16), None, "nobody waits");
    }
}
