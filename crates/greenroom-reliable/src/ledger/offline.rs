//! Waiting messages in a journal, without a node: listed, and dropped one by one.
//!
//! Listing takes no fence. Dropping takes the partition's fence for one commit, so it is safe beside a live owner: that owner's
//! commits are refused from then on, and it takes the partition anew.

use std::sync::Arc;
use std::time::Duration;

use greenroom_protocols::delivery::{
    Commit, CommitId, Deferred, Envelope, Epoch, Lane, Life, Ownership, Parked, PartitionId, Receipts, Sealed, Slot,
    TurnAttempt, WaitingPlace, Write,
};
use greenroom_store::journal::ENTRIES_MAX;
use greenroom_store::{Journal, StoreError};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::records::{Fence, decode};
use super::{Ledger, Name, Outcome, Place};

/// Name of a reliable actor, as journals hold it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct StoredActor {
    /// The kind.
    pub kind: String,
    /// The key.
    pub key: String,
}

impl Name for StoredActor {
    fn kind(&self) -> &str {
        &self.kind
    }

    fn key(&self) -> &str {
        &self.key
    }
}

/// Body of a message, of which only the method is read.
#[derive(Clone, Debug, Deserialize)]
enum StoredBody {
    Call { method: String },
    Reply(IgnoredAny),
    Created,
    Output(IgnoredAny),
}

/// Body of a commit that holds no message.
#[derive(Clone, Debug, Serialize)]
enum NoBody {}

/// Place of a message in a journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoredPlace {
    /// It waits for its turn.
    Waiting(WaitingPlace),
    /// It is parked, under a slot of this epoch and serial.
    Parked(u64, u64),
}

/// Message that a journal holds for an actor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredMessage {
    /// The actor's partition.
    pub partition: u32,
    /// Its place there.
    pub place: StoredPlace,
    /// The receiving actor.
    pub to: StoredActor,
    /// The sending actor; `None` if it came from outside.
    pub from: Option<StoredActor>,
    /// The method, or what else it is.
    pub method: String,
    /// Processes that died during its turn, as far as the journal says.
    pub deaths: u32,
    /// The reason why it is parked.
    pub error: Option<String>,
}

impl StoredPlace {
    /// The name of the place, as `greenroom reliable waiting` shows it at a node.
    pub fn name(&self) -> String {
        match self {
            Self::Waiting(WaitingPlace::Counted { from, number, .. }) => format!("counted-{}-{number}", from.0),
            Self::Waiting(WaitingPlace::Loose { from, number, .. }) => format!("loose-{}-{number}", from.0),
            Self::Waiting(WaitingPlace::Queue(slot)) => format!("queue-{}-{}", slot.epoch.0, slot.serial),
            Self::Waiting(WaitingPlace::Call(key)) => format!("call-{key}"),
            Self::Parked(epoch, serial) => format!("{epoch}-{serial}"),
        }
    }
}

/// The partitions of one cluster in a journal.
#[derive(Clone, Debug)]
pub struct OfflineJournal {
    journal: Arc<dyn Journal>,
    cluster: String,
    partitions: u32,
    timeout: Duration,
}

impl OfflineJournal {
    /// Opens the partitions of the cluster of this name.
    ///
    /// # Errors
    /// [`StoreError`]; [`Format`](StoreError::Format) if the journal holds no such cluster.
    pub async fn open(journal: Arc<dyn Journal>, cluster: &str, timeout: Duration) -> Result<Self, StoreError> {
        #[derive(Deserialize)]
        struct About {
            partitions: u32,
        }
        let key = format!("reliable/{cluster}/about");
        let unreadable = |reason: String| StoreError::Format { store: "the journal".to_owned(), reason };
        let found = journal.read(&key, timeout).await?.ok_or_else(|| {
            unreadable(format!("it holds no cluster {cluster:?}; name the cluster as its nodes do, with `--cluster`"))
        })?;
        let About { partitions } = serde_json::from_slice(&found.value)
            .map_err(|error| unreadable(format!("record {key:?} is none of a journal: {error}")))?;
        Ok(Self { journal, cluster: cluster.to_owned(), partitions, timeout })
    }

    /// The messages that wait or are parked, by their partitions.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn messages(&self) -> Result<Vec<StoredMessage>, StoreError> {
        let mut messages = Vec::new();
        for partition in 0..self.partitions {
            let Some((ledger, _)) = self.ledger(partition).await? else { continue };
            self.own(&ledger, &mut messages).await?;
            self.sent(&ledger, &mut messages).await?;
        }
        messages.sort_by_key(|message| message.partition);
        Ok(messages)
    }

    /// Drops the message at the place of this name. Returns what it was.
    ///
    /// # Errors
    /// [`StoreError`]; [`Format`](StoreError::Format) if no message is there, or it cannot be dropped without a node.
    pub async fn discard(&self, partition: u32, name: &str) -> Result<StoredMessage, StoreError> {
        let refused = |reason: String| StoreError::Format { store: "the journal".to_owned(), reason };
        let messages = self.messages().await?;
        let found = messages.into_iter().find(|found| found.partition == partition && found.place.name() == name);
        let message = found.ok_or_else(|| {
            refused(format!("no message waits at {partition}:{name}; `greenroom reliable waiting` lists those that do"))
        })?;
        let none = || refused(format!("partition {partition} was never used"));
        let (ledger, before) = self.ledger(partition).await?.ok_or_else(none)?;
        let writes = match &message.place {
            StoredPlace::Waiting(place @ WaitingPlace::Counted { from, life, number }) => {
                let mut receipts = ledger.receipts(*from).await?;
                if receipts.life != *life {
                    receipts = Receipts { life: *life, ..Receipts::default() };
                }
                receipts.add(*number);
                let (low, above) = (receipts.low, receipts.ranges());
                vec![Write::Receipts { from: *from, life: *life, low, above }, Write::EndAttempt(place.clone())]
            }
            StoredPlace::Waiting(place @ WaitingPlace::Queue(slot)) => {
                let actor = message.to.clone();
                vec![Write::Undefer { actor, slot: *slot }, Write::EndAttempt(place.clone())]
            }
            StoredPlace::Parked(epoch, serial) => vec![Write::Unpark(Slot { epoch: Epoch(*epoch), serial: *serial })],
            StoredPlace::Waiting(WaitingPlace::Loose { .. } | WaitingPlace::Call(_)) => {
                let why =
                    "it was sent at least once, so no record says that it was received; drop it at a running node";
                return Err(refused(why.to_owned()));
            }
        };
        let fenced = ledger.fenced(before).await?;
        let commit = Commit { id: CommitId(1), epoch: fenced.owner.epoch, turns: Vec::new(), writes };
        match fenced.commit::<StoredActor, NoBody>(&commit, &[]).await {
            Outcome::Committed => Ok(message),
            Outcome::Deposed => Err(refused(format!(
                "partition {partition} has just been taken by a running node; drop the message there: `greenroom reliable drop`"
            ))),
            Outcome::Aborted(reason) => Err(refused(reason)),
            Outcome::Again(error) | Outcome::Unsettled(error) => Err(error),
        }
    }

    /// Reads the fence of a partition; `None` if it was never used.
    async fn ledger(&self, partition: u32) -> Result<Option<(Ledger, Fence)>, StoreError> {
        let place = Place::new(&self.cluster, PartitionId(partition));
        let key = place.fence();
        let Some(found) = self.journal.read(&key, self.timeout).await? else { return Ok(None) };
        let record = Fence::decode(&key, &found.value)?;
        let owner = Ownership { partition: PartitionId(partition), epoch: record.epoch };
        let (journal, timeout, life) = (self.journal.clone(), self.timeout, record.life);
        let ledger =
            Ledger { journal, place, owner, life, fence: Some(found.version), record: record.clone(), timeout };
        Ok(Some((ledger, record)))
    }

    /// Adds what a partition holds for its own actors.
    async fn own(&self, ledger: &Ledger, messages: &mut Vec<StoredMessage>) -> Result<(), StoreError> {
        let attempts = ledger.attempts().await?;
        let partition = ledger.owner.partition;
        for Deferred { slot, envelope } in ledger.deferred::<StoredActor, StoredBody>().await? {
            let place = WaitingPlace::Queue(slot);
            let deaths = deaths(&attempts, &place);
            messages.push(shown(partition, StoredPlace::Waiting(place), &envelope, (deaths, None)));
        }
        for Parked { slot, envelope, error, .. } in ledger.parked::<StoredActor, StoredBody>().await? {
            let place = StoredPlace::Parked(slot.epoch.0, slot.serial);
            messages.push(shown(partition, place, &envelope, (0, Some(error))));
        }
        Ok(())
    }

    /// Adds what a partition has sent to others that they have not received.
    async fn sent(&self, ledger: &Ledger, messages: &mut Vec<StoredMessage>) -> Result<(), StoreError> {
        let (from, life) = (ledger.owner.partition, ledger.life);
        for lane in ledger.lanes().await? {
            let (to, is_counted) = match lane {
                Lane::Counted(to) => (to, true),
                Lane::Loose(to) => (to, false),
                Lane::Outside(_) => continue,
            };
            let receiver = self.ledger(to.0).await?.map(|(receiver, _)| receiver);
            let (mut receipts, mut attempts) = (Receipts::default(), Vec::new());
            if let Some(receiver) = &receiver {
                receipts = receiver.receipts(from).await?;
                attempts = receiver.attempts().await?;
            }
            let has = |number| is_counted && receipts.life == life && receipts.has(number);
            let mut next = if is_counted && receipts.life == life { receipts.low + 1 } else { 1 };
            loop {
                let entries = ledger.page::<StoredActor, StoredBody>(lane, next, ENTRIES_MAX).await?;
                let Some((last, _)) = entries.last() else { break };
                next = last + 1;
                for (number, envelope) in entries.iter().filter(|(number, _)| !has(*number)) {
                    let place = place(from, life, *number, is_counted);
                    let deaths = deaths(&attempts, &place);
                    messages.push(shown(to, StoredPlace::Waiting(place), envelope, (deaths, None)));
                }
            }
        }
        Ok(())
    }
}

impl Ledger {
    /// The receive record of a sending partition.
    async fn receipts(&self, from: PartitionId) -> Result<Receipts, StoreError> {
        let key = self.place.receipts(from);
        let Some(found) = self.journal.read(&key, self.timeout).await? else { return Ok(Receipts::default()) };
        let (_, life, low, above) = decode::<(PartitionId, Life, u64, Vec<(u64, u64)>)>(&key, &found.value)?;
        Ok(Receipts::from_ranges(life, low, &above))
    }

    /// Takes the fence for an operator. The next owner judges the owner before as if nothing had happened.
    async fn fenced(self, before: Fence) -> Result<Self, StoreError> {
        let key = self.place.fence();
        let record = Fence { epoch: Epoch(before.epoch.0 + 1), ..before };
        let Some(version) = &self.fence else { return Ok(self) };
        let version = self.journal.replace(&key, record.encode(&key)?, version, self.timeout).await?;
        let owner = Ownership { epoch: record.epoch, ..self.owner };
        Ok(Self { owner, fence: Some(version), record, ..self })
    }
}

fn place(from: PartitionId, life: Life, number: u64, is_counted: bool) -> WaitingPlace {
    if is_counted { WaitingPlace::Counted { from, life, number } } else { WaitingPlace::Loose { from, life, number } }
}

fn deaths(attempts: &[TurnAttempt], place: &WaitingPlace) -> u32 {
    attempts.iter().find(|attempt| attempt.place == *place).map_or(0, |attempt| attempt.deaths)
}

fn shown(
    partition: PartitionId,
    place: StoredPlace,
    envelope: &Sealed<StoredActor, StoredBody>,
    (deaths, error): (u32, Option<String>),
) -> StoredMessage {
    let Envelope { from, to, body, .. } = &**envelope;
    let method = match body {
        StoredBody::Call { method } => method.clone(),
        StoredBody::Reply(_) => "a reply".to_owned(),
        StoredBody::Created => "its creation".to_owned(),
        StoredBody::Output(_) => "an output".to_owned(),
    };
    StoredMessage { partition: partition.0, place, to: to.clone(), from: from.clone(), method, deaths, error }
}
