//! The thread that carries out commits as they come.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use greenroom_store::StoreError;
use rdkafka::Message;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::producer::BaseRecord;
use rdkafka::{Offset, TopicPartitionList};

use crate::checkpoint::Job;
use crate::clients::Writer;
use crate::command::{Command, Id, Order};
use crate::fault;
use crate::replica::{Carried, Replica};
use crate::state::{Phase, Shared};

/// Carries out commits, for all slices that are open.
pub(crate) struct Tail {
    pub(crate) shared: Arc<Shared>,
    pub(crate) consumer: BaseConsumer,
    pub(crate) writer: Arc<Writer>,
    pub(crate) restored: Receiver<(i32, Replica)>,
    pub(crate) checkpoints: Sender<Job>,
    pub(crate) opened: Arc<tokio::sync::watch::Sender<u64>>,
}

impl Tail {
    /// Runs until nobody uses the journal.
    pub(crate) fn run(self) {
        let mut look_at = Instant::now() + LOOK_EVERY;
        while !self.shared.is_over() {
            while let Ok((slice, replica)) = self.restored.try_recv() {
                self.begin(slice, replica);
            }
            match self.consumer.poll(POLL) {
                None => {}
                Some(Ok(message)) => {
                    self.carry_out(message.partition(), message.offset(), message.payload().unwrap_or_default());
                }
                Some(Err(error)) => self.failed(&error),
            }
            if look_at <= Instant::now() {
                look_at = Instant::now() + LOOK_EVERY;
                self.let_go_of_unused();
            }
        }
    }

    fn begin(&self, slice: i32, replica: Replica) {
        let next = replica.next;
        {
            let mut state = self.shared.slice(slice);
            state.replica = replica;
            state.phase = Phase::Open;
        }
        self.opened.send_modify(|times| *times += 1);
        if let Err(error) = self.list(slice, next).and_then(|list| self.consumer.incremental_assign(&list)) {
            tracing::warn!(slice, %error, "commits in Kafka cannot be followed");
            self.close(slice, Phase::Closed);
        }
    }

    fn list(&self, slice: i32, next: i64) -> KafkaResult<TopicPartitionList> {
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&self.shared.settings.commits(), slice, Offset::Offset(next))?;
        Ok(list)
    }

    fn carry_out(&self, slice: i32, offset: i64, record: &[u8]) {
        let command = match Command::decode(record) {
            Ok(command) => command,
            Err(why) => {
                let settings = &self.shared.settings;
                let error = fault::unreadable(&settings.name, &settings.commits(), slice, offset, &why);
                tracing::error!(%error, "a journal in Kafka cannot be followed any further");
                return self.close(slice, Phase::Broken(error));
            }
        };
        let id = command.id;
        let mine = id.writer == self.shared.writer;
        let mut state = self.shared.slice(slice);
        // What was fetched before the slice was closed and opened again.
        if !matches!(state.phase, Phase::Open) || offset < state.replica.next {
            return;
        }
        let carried = state.replica.apply(offset, record.len(), command);
        let claimed = mine && matches!(carried, Carried::Claimed);
        let answer = match carried {
            Carried::Committed(outcome) => Some(outcome),
            Carried::Trimmed => Some(Ok(greenroom_store::Committed::default())),
            Carried::Claimed | Carried::Nothing => None,
        };
        if let (true, Some(answer)) = (mine, answer)
            && let Some(waiting) = state.answers.remove(&id.serial)
        {
            // An error means that it has given up.
            let _ = waiting.answer.send(answer);
        }
        state.wake_readers();
        if let (true, Some(claim)) = (claimed, state.replica.claim()) {
            // Nobody listens once all is over.
            let _ = self.checkpoints.send(Job { slice, claim, records: state.replica.unsaved() });
        }
        let behind = state.replica.behind_bytes;
        state.claimed_bytes = state.claimed_bytes.min(behind);
        if mine && !claimed && behind - state.claimed_bytes >= self.shared.settings.checkpoint_bytes {
            state.claimed_bytes = behind;
            drop(state);
            self.claim(slice);
        }
    }

    /// Asks for the right to write the next checkpoint.
    fn claim(&self, slice: i32) {
        let record = Command { id: Id { writer: self.shared.writer, serial: 0 }, order: Order::Claim }.encode();
        let topic = self.shared.settings.commits();
        let to = BaseRecord::<'_, (), [u8], usize>::with_opaque_to(&topic, 0).partition(slice).payload(&record);
        if let Err((error, _)) = self.writer.send(to) {
            tracing::debug!(slice, %error, "no checkpoint now");
        }
    }

    fn failed(&self, error: &KafkaError) {
        match error.rdkafka_error_code() {
            // Another process has written a checkpoint and removed what this one had not read yet: all is read anew.
            Some(RDKafkaErrorCode::OffsetOutOfRange | RDKafkaErrorCode::AutoOffsetReset) => {
                for slice in 0..self.shared.slices() {
                    let is_open = matches!(self.shared.slice(slice).phase, Phase::Open);
                    if is_open {
                        self.close(slice, Phase::Closed);
                    }
                }
            }
            _ => tracing::debug!(%error, "commits in Kafka cannot be read now"),
        }
    }

    fn close(&self, slice: i32, phase: Phase) {
        // It was not followed if that fails.
        drop(self.list(slice, 0).and_then(|list| self.consumer.incremental_unassign(&list)));
        self.shared.slice(slice).close(phase);
        self.opened.send_modify(|times| *times += 1);
    }

    fn let_go_of_unused(&self) {
        for slice in 0..self.shared.slices() {
            let unused = {
                let state = self.shared.slice(slice);
                let idle = state.used.elapsed() >= UNUSED && state.answers.is_empty() && state.readers.is_empty();
                matches!(state.phase, Phase::Open) && idle
            };
            if unused {
                self.close(slice, Phase::Closed);
            }
        }
    }
}

/// What a slice is asked that cannot be restored.
pub(crate) fn broken(shared: &Shared, slice: i32, error: StoreError) {
    tracing::error!(%error, slice, "a journal in Kafka cannot be read");
    shared.slice(slice).close(Phase::Broken(error));
}

/// A slice that nobody has asked anything for so long is let go of.
const UNUSED: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How long news other than records may wait.
const POLL: Duration = Duration::from_millis(10);
