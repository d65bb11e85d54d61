//! The thread that writes checkpoints: what has changed since the last one, in one transaction.
//!
//! Who writes is decided by the commits themselves: a claim is a record among them, and the last one holds. What is written
//! is what there was at the claim. The transaction's id fences those who claimed earlier, and after that the claim must
//! still be the last one: so no checkpoint takes the place of a later one.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use greenroom_store::{Result, StoreError};
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{Offset, TopicPartitionList};

use crate::clients::{self, Writer};
use crate::command::{Command, Id, Order};
use crate::fault;
use crate::record::{Record, RecordKey};
use crate::replica::Claim;
use crate::state::{Phase, Shared};

/// A checkpoint to be written.
pub(crate) struct Job {
    pub(crate) slice: i32,
    pub(crate) claim: Claim,
    pub(crate) records: Vec<(RecordKey, Option<Record>)>,
}

/// Writes checkpoints.
pub(crate) struct Checkpointer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) writer: Arc<Writer>,
    pub(crate) jobs: Receiver<Job>,
}

impl Checkpointer {
    /// Runs until nobody uses the journal.
    pub(crate) fn run(self) {
        while let Ok(job) = self.jobs.recv() {
            if self.shared.is_over() {
                return;
            }
            let (slice, records) = (job.slice, job.records.len());
            match self.write(job) {
                Ok(true) => tracing::debug!(slice, records, "a checkpoint is written"),
                Ok(false) => tracing::debug!(slice, "another process writes the checkpoint"),
                // The next claim does it.
                Err(error) => tracing::warn!(slice, %error, "a checkpoint could not be written"),
            }
        }
    }

    /// Whether it was written, and not left to a later claim.
    fn write(&self, job: Job) -> Result<bool> {
        let settings = &self.shared.settings;
        let fault = |error: KafkaError| fault::without_effect(&settings.name, &error);
        let producer = clients::checkpointer(settings, job.slice)?;
        producer.init_transactions(TRANSACTION).map_err(fault)?;
        if !self.is_last(&job)? {
            return Ok(false);
        }
        producer.begin_transaction().map_err(fault)?;
        let topic = settings.states();
        let end = (RecordKey::Checkpoint, Some(Record::Checkpoint { claim: job.claim.offset }));
        for (key, record) in job.records.iter().chain([&end]) {
            send(&producer, &topic, job.slice, &key.encode(), record.as_ref().map(Record::encode)).map_err(fault)?;
        }
        producer.commit_transaction(TRANSACTION).map_err(fault)?;
        let order = Order::Checkpointed { claim: job.claim.offset };
        let record = Command { id: Id { writer: self.shared.writer, serial: 0 }, order }.encode();
        let commits = settings.commits();
        let to = BaseRecord::<'_, (), [u8], usize>::with_opaque_to(&commits, 0).partition(job.slice).payload(&record);
        self.writer.send(to).map_err(|(error, _)| fault(error))?;
        self.remove_before(job.slice, job.claim.offset).map_err(fault)?;
        Ok(true)
    }

    /// Whether nobody has claimed later, as all commits until now say.
    fn is_last(&self, job: &Job) -> Result<bool> {
        let settings = &self.shared.settings;
        let ends = self.writer.client().fetch_watermarks(&settings.commits(), job.slice, PATIENCE);
        let (_, end) = ends.map_err(|error| fault::without_effect(&settings.name, &error))?;
        let begun = Instant::now();
        loop {
            {
                let state = self.shared.slice(job.slice);
                if !matches!(state.phase, Phase::Open) {
                    return Ok(false);
                }
                if state.replica.next >= end {
                    return Ok(state.replica.claim() == Some(job.claim));
                }
            }
            if begun.elapsed() > PATIENCE || self.shared.is_over() {
                let reason = "its commits are not read in time".to_owned();
                return Err(StoreError::Unavailable { store: settings.name.clone(), reason });
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Removes the commits that a checkpoint has.
    fn remove_before(&self, slice: i32, claim: i64) -> Result<(), KafkaError> {
        let settings = &self.shared.settings;
        let admin: AdminClient<DefaultClientContext> = clients::common(settings).create()?;
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&settings.commits(), slice, Offset::Offset(claim + 1))?;
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.map_err(|error| KafkaError::AdminOpCreation(error.to_string()))?;
        let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
        runtime.block_on(admin.delete_records(&list, &options)).map(drop)
    }
}

fn send(
    producer: &BaseProducer,
    topic: &str,
    slice: i32,
    key: &[u8],
    payload: Option<Vec<u8>>,
) -> Result<(), KafkaError> {
    loop {
        let mut to = BaseRecord::to(topic).partition(slice).key(key);
        if let Some(payload) = &payload {
            to = to.payload(payload);
        }
        match producer.send(to) {
            Ok(()) => return Ok(()),
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), _)) => producer.poll(PAUSE),
            Err((error, _)) => return Err(error),
        }
    }
}

/// For each step of a transaction.
const TRANSACTION: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(5);
