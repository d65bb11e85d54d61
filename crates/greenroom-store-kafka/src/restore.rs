//! The thread that restores slices from their last checkpoints.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use greenroom_store::StoreError;
use rdkafka::Message;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::{Offset, TopicPartitionList};

use crate::record::{Record, RecordKey};
use crate::replica::Replica;
use crate::state::Shared;
use crate::{fault, tail};

/// Restores slices.
pub(crate) struct Restorer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) consumer: BaseConsumer,
    pub(crate) wanted: Receiver<i32>,
    pub(crate) restored: Sender<(i32, Replica)>,
    pub(crate) opened: Arc<tokio::sync::watch::Sender<u64>>,
}

/// Why a slice cannot be restored.
enum Failure {
    /// Not now.
    Again(String),
    /// Never.
    Broken(StoreError),
}

impl From<KafkaError> for Failure {
    fn from(error: KafkaError) -> Self {
        Self::Again(error.to_string())
    }
}

impl Restorer {
    /// Runs until nobody uses the journal.
    pub(crate) fn run(self) {
        while let Ok(slice) = self.wanted.recv() {
            loop {
                if self.shared.is_over() {
                    return;
                }
                match self.restore(slice) {
                    Ok(replica) => {
                        // Nobody listens once all is over.
                        let _ = self.restored.send((slice, replica));
                    }
                    Err(Failure::Broken(error)) => {
                        tail::broken(&self.shared, slice, error);
                        self.opened.send_modify(|times| *times += 1);
                    }
                    Err(Failure::Again(why)) => {
                        tracing::debug!(slice, why, "a partition of a journal in Kafka is not read yet");
                        std::thread::sleep(PAUSE);
                        continue;
                    }
                }
                break;
            }
        }
    }

    fn restore(&self, slice: i32) -> Result<Replica, Failure> {
        let read = self.checkpoint(slice);
        // It holds nothing if that fails.
        drop(self.consumer.unassign());
        let replica = read?;
        let settings = &self.shared.settings;
        let (low, high) = self.consumer.fetch_watermarks(&settings.commits(), slice, PATIENCE)?;
        if low > replica.next && low > 0 {
            // A later checkpoint is just being finished, or somebody else has removed commits.
            return Err(Failure::Again(format!("commits begin at {low}, and the checkpoint ends at {}", replica.next)));
        }
        if replica.next > high {
            let (name, next) = (settings.name.clone(), replica.next);
            let reason = format!(
                "its commits end at {high} and its checkpoint at {next}: topic {:?} was lost or made anew; restore it, or \
                 remove both topics to begin anew",
                settings.commits()
            );
            return Err(Failure::Broken(StoreError::Format { store: name, reason }));
        }
        Ok(replica)
    }

    /// Reads the last checkpoint: all records of the states topic to its end.
    fn checkpoint(&self, slice: i32) -> Result<Replica, Failure> {
        let topic = self.shared.settings.states();
        self.consumer.assign(&begin(&topic, slice)?)?;
        let (mut replica, mut entries) = (Replica::default(), BTreeMap::new());
        let mut heard = Instant::now();
        loop {
            let message = match self.consumer.poll(POLL) {
                Some(Ok(message)) => message,
                Some(Err(KafkaError::PartitionEOF(_))) => break,
                Some(Err(error)) => return Err(error.into()),
                None if heard.elapsed() > PATIENCE || self.shared.is_over() => {
                    return Err(Failure::Again("no broker answers".to_owned()));
                }
                None => continue,
            };
            heard = Instant::now();
            let unreadable = |why| {
                let name = &self.shared.settings.name;
                Failure::Broken(fault::unreadable(name, &topic, slice, message.offset(), &why))
            };
            let key = RecordKey::decode(message.key().unwrap_or_default()).map_err(unreadable)?;
            let record = match message.payload() {
                Some(payload) => Some(Record::decode(&key, payload).map_err(unreadable)?),
                None => None,
            };
            match (key, record) {
                (RecordKey::Entry(name, position), Some(Record::Entry(value))) => {
                    entries.insert((name, position), value);
                }
                (RecordKey::Entry(name, position), _) => _ = entries.remove(&(name, position)),
                (key, record) => replica.restore(key, record),
            }
        }
        replica.restore_entries(entries);
        Ok(replica)
    }
}

fn begin(topic: &str, slice: i32) -> KafkaResult<TopicPartitionList> {
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, slice, Offset::Beginning)?;
    Ok(list)
}

const PAUSE: Duration = Duration::from_millis(100);
const POLL: Duration = Duration::from_millis(100);
/// Silence of the brokers after which a slice is tried again.
const PATIENCE: Duration = Duration::from_secs(5);
