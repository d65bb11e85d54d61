mod checkpoints;
mod conformance;
mod restarts;
mod topic;

use std::sync::Arc;
use std::time::Duration;

use greenroom_engines::{Kafka, unless_missing};

use super::*;

const BY: Duration = Duration::from_secs(30);

fn broker() -> Option<Kafka> {
    unless_missing(Kafka::start())
}

async fn open(url: &str) -> Arc<KafkaStore> {
    Arc::new(KafkaStore::open(url).await.unwrap())
}

/// A journal of its own in a broker that several have.
fn named(kafka: &Kafka, prefix: &str, parameters: &str) -> String {
    format!("kafka://127.0.0.1:{}/{prefix}?partitions=3{parameters}", kafka.port())
}
