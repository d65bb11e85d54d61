//! The ledger of one partition: what its owner reads of a journal, and writes to it.
//!
//! Everything lies under `reliable/CLUSTER/PARTITION/` (see [`Place`]), and is written under a fence that each new owner
//! replaces: see [`Journal`].

mod names;
mod occupied;
mod offline;
mod records;
mod recovery;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::try_join;
use greenroom_protocols::delivery::{
    Commit, Deferred, Lane, Life, Ownership, Parked, Presence, Recorded, Recovered, Sealed, TurnAttempt, TurnId, Write,
};
use greenroom_protocols::reminders::Wall;
use greenroom_store::journal::ENTRIES_MAX;
use greenroom_store::{Commit as JournalCommit, Journal, StoreError, Version, scan};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use names::{Name, Place};
pub use occupied::is_occupied;
pub use offline::{OfflineJournal, StoredActor, StoredMessage, StoredPlace};
use records::{Fence, decode, encode};

use crate::fields::Change;

/// One ownership of a partition, as the journal sees it. Clones share it.
#[derive(Clone, Debug)]
pub struct Ledger {
    journal: Arc<dyn Journal>,
    place: Place,
    owner: Ownership,
    life: Life,
    /// `None` only where a test shows that the fence matters.
    fence: Option<Version>,
    /// The fence's record.
    record: Fence,
    timeout: Duration,
}

/// Process that owns partitions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OwnerProcess<'a> {
    /// The node's name, for people.
    pub name: &'a str,
    /// A number that no other process has.
    pub number: u64,
}

/// What a turn has changed of one field of its actor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FieldChanges {
    /// The field's name.
    pub field: Cow<'static, str>,
    /// What is different.
    pub changes: Vec<Change>,
}

/// What one turn has changed of its actor's fields.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TurnChanges<A> {
    /// These fields of the actor.
    Fields(A, Vec<FieldChanges>),
    /// All of the actor's state goes: it has halted. The entries that it has.
    Halted(A, Vec<(String, String)>),
}

/// What has become of a commit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It is applied.
    Committed,
    /// It is not and never will be, for what it is.
    Aborted(String),
    /// It is not, and may be tried again: the journal is full, or cannot be reached.
    Again(StoreError),
    /// Nobody knows.
    Unsettled(StoreError),
    /// Another node has the fence.
    Deposed,
}

/// A field's name and its entries, in the order of their names.
pub type StoredField = (String, Vec<(String, Bytes)>);

impl Ledger {
    /// Makes `owner` the owner of the partition in `place`: takes the fence, then reads what a partition recovers from.
    ///
    /// `now` is the time of day. A partition that was never used begins in the life of this number, which is higher than that
    /// of any journal that was lost.
    ///
    /// # Errors
    /// [`StoreError`]; [`Conflict`](StoreError::Conflict) if another node took the fence meanwhile.
    ///
    /// # Cancel safety
    /// Dropping it may leave the fence taken, which is as good as a crash.
    pub async fn take<A, M>(
        journal: Arc<dyn Journal>,
        place: Place,
        owner: OwnerProcess<'_>,
        now: Wall,
        timeout: Duration,
    ) -> Result<(Self, Recovered<A, M>), StoreError>
    where
        A: Name,
        M: DeserializeOwned,
    {
        recovery::take(journal, place, owner, now, timeout).await
    }

    /// Commits without the fence from here on: for tests that show what it prevents.
    #[doc(hidden)]
    #[must_use]
    pub fn unfenced(self) -> Self {
        Self { fence: None, ..self }
    }

    /// Whose ledger it is.
    pub fn owner(&self) -> Ownership {
        self.owner
    }

    /// The partition's life.
    pub fn life(&self) -> Life {
        self.life
    }

    /// What is known of an actor: its incarnation, and its own queue.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn load<A, M>(&self, actor: &A) -> Result<(Option<Presence>, Vec<Deferred<A, M>>), StoreError>
    where
        A: Name,
        M: DeserializeOwned,
    {
        try_join(self.presence(actor), self.queue(actor)).await
    }

    async fn presence<A: Name>(&self, actor: &A) -> Result<Option<Presence>, StoreError> {
        for key in [self.place.present(actor), self.place.tombstone(actor)] {
            if let Some(found) = self.journal.read(&key, self.timeout).await? {
                return Ok(Some(decode::<(A, Presence)>(&key, &found.value)?.1));
            }
        }
        Ok(None)
    }

    /// The messages in the own queues of all actors.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn deferred<A: Name, M: DeserializeOwned>(&self) -> Result<Vec<Deferred<A, M>>, StoreError> {
        let mut deferred = Vec::new();
        self.each(&self.place.all_deferred(), |key, value| {
            deferred.push(decode(key, value)?);
            Ok(())
        })
        .await?;
        Ok(deferred)
    }

    async fn queue<A, M>(&self, actor: &A) -> Result<Vec<Deferred<A, M>>, StoreError>
    where
        A: Name,
        M: DeserializeOwned,
    {
        let mut queue = Vec::new();
        self.each(&self.place.deferred_of(actor), |key, value| {
            queue.push(decode::<Deferred<A, M>>(key, value)?);
            Ok(())
        })
        .await?;
        Ok(queue)
    }

    /// The fields of an actor.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn fields<A: Name>(&self, actor: &A) -> Result<Vec<StoredField>, StoreError> {
        let prefix = self.place.state_of(actor);
        let mut fields: Vec<StoredField> = Vec::new();
        self.each(&prefix, |key, value| {
            let (field, entry) = names::split_entry(&key[prefix.len()..]);
            match fields.last_mut().filter(|(name, _)| name == field) {
                Some((_, entries)) => entries.push((entry.to_owned(), value.clone())),
                None => fields.push((field.to_owned(), vec![(entry.to_owned(), value.clone())])),
            }
            Ok(())
        })
        .await?;
        Ok(fields)
    }

    /// Commits what a partition asks for, together with what its turns have changed of their actors' fields: `changes`
    /// in the order of the turns.
    ///
    /// # Cancel safety
    /// Dropping it leaves the outcome unknown.
    pub async fn commit<A, M>(&self, commit: &Commit<A, M>, changes: &[(TurnId, TurnChanges<A>)]) -> Outcome
    where
        A: Name,
        M: Serialize + Clone,
    {
        let expected: Vec<u64> = commit
            .writes
            .iter()
            .filter_map(|write| match write {
                Write::Append { number, .. } | Write::Record { number, .. } | Write::Tie { number, .. } => {
                    Some(*number)
                }
                _ => None,
            })
            .collect();
        let journal_commit = match self.journal_commit(commit, changes) {
            Ok(journal_commit) => journal_commit,
            Err(error) => return Outcome::Aborted(error.to_string()),
        };
        match self.journal.commit(journal_commit, self.timeout).await {
            Ok(done) if done.positions == expected => Outcome::Committed,
            // Somebody has appended to our logs without our fence: only a new reading tells what is there.
            Ok(_) => Outcome::Unsettled(StoreError::Unknown {
                key: self.place.fence(),
                reason: "the journal's logs are longer than this owner knows".to_owned(),
            }),
            Err(StoreError::Conflict { .. }) => Outcome::Deposed,
            Err(error @ (StoreError::Unknown { .. } | StoreError::Format { .. })) => Outcome::Unsettled(error),
            Err(
                error
                @ (StoreError::InvalidKey { .. } | StoreError::TooLarge { .. } | StoreError::InvalidCommit { .. }),
            ) => Outcome::Aborted(error.to_string()),
            Err(error) => Outcome::Again(error),
        }
    }

    /// Entries of a lane from `from` on, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn page<A, M>(&self, lane: Lane, from: u64, limit: usize) -> Result<Vec<(u64, Sealed<A, M>)>, StoreError>
    where
        A: Name,
        M: DeserializeOwned,
    {
        let log = self.place.lane(lane);
        let entries = self.journal.entries(&log, from, limit.min(ENTRIES_MAX), self.timeout).await?;
        entries.into_iter().map(|entry| Ok((entry.position, decode(&log, &entry.value)?))).collect()
    }

    /// Trims a lane up to and with `through`.
    ///
    /// # Errors
    /// [`StoreError`]; nothing depends on it.
    pub async fn trim(&self, lane: Lane, through: u64) -> Result<(), StoreError> {
        self.journal.trim(&self.place.lane(lane), through, self.timeout).await
    }

    /// The recorded answer with this key, if it is one of those with `numbers`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn recall<M: DeserializeOwned>(
        &self,
        key: &str,
        numbers: &[u64],
    ) -> Result<Option<Recorded<M>>, StoreError> {
        let log = self.place.answers();
        for number in numbers {
            let entries = self.journal.entries(&log, *number, 1, self.timeout).await?;
            if let Some(entry) = entries.first().filter(|entry| entry.position == *number) {
                let recorded: Recorded<M> = decode(&log, &entry.value)?;
                if recorded.key == key {
                    return Ok(Some(recorded));
                }
            }
        }
        Ok(None)
    }

    /// Trims the logs of recorded answers and of their bundles up to and with these numbers.
    ///
    /// # Errors
    /// [`StoreError`]; nothing depends on it.
    pub async fn prune(&self, answers: u64, bundles: u64) -> Result<(), StoreError> {
        // What is in no bundle any more goes first.
        self.journal.trim(&self.place.answers(), answers, self.timeout).await?;
        self.journal.trim(&self.place.bundles(), bundles, self.timeout).await
    }

    /// The parked messages, for operators.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn parked<A: Name, M: DeserializeOwned>(&self) -> Result<Vec<Parked<A, M>>, StoreError> {
        let mut parked = Vec::new();
        self.each(&self.place.parked(), |key, value| {
            parked.push(decode(key, value)?);
            Ok(())
        })
        .await?;
        Ok(parked)
    }

    /// Leaves the partition without a death. `attempts` are what is left of those that this owner knows. With `is_clean` the next
    /// owner suspects no other message; an owner that came after a death itself must not say so, as messages that were begun then
    /// may still be on their way. Nothing can be committed afterwards.
    ///
    /// # Errors
    /// [`StoreError`]; then the next owner takes this one for dead, which costs a commit for each message that waits.
    pub async fn leave(self, attempts: Vec<TurnAttempt>, is_clean: bool) -> Result<(), StoreError> {
        let Some(fence) = &self.fence else { return Ok(()) };
        let key = self.place.fence();
        if !attempts.is_empty() {
            let mut out = JournalCommit::new().hold(key.clone(), fence);
            for attempt in &attempts {
                let name = self.place.attempt(&attempt.place);
                let value = encode(&name, attempt)?;
                out = out.put(name, value);
            }
            self.journal.commit(out, self.timeout).await?;
        }
        if !is_clean {
            return Ok(());
        }
        let value = Fence { is_left: true, after_death: false, ..self.record }.encode(&key)?;
        self.journal.replace(&key, value, fence, self.timeout).await.map(|_| ())
    }

    fn journal_commit<A: Name, M: Serialize + Clone>(
        &self,
        commit: &Commit<A, M>,
        changes: &[(TurnId, TurnChanges<A>)],
    ) -> Result<JournalCommit, StoreError> {
        let mut out = JournalCommit::new();
        if let Some(fence) = &self.fence {
            out = out.hold(self.place.fence(), fence);
        }
        let mut fields = std::collections::BTreeMap::new();
        for (_, change) in changes.iter().filter(|(turn, _)| commit.turns.contains(turn)) {
            match change {
                TurnChanges::Fields(actor, changed) => {
                    for FieldChanges { field, changes } in changed {
                        for Change { entry, value } in changes {
                            fields.insert(self.place.field(actor, field, entry), value.clone());
                        }
                    }
                }
                TurnChanges::Halted(actor, entries) => {
                    let prefix = self.place.state_of(actor);
                    // What earlier turns of this commit have put there goes too.
                    let new: Vec<String> = fields
                        .range(prefix.clone()..)
                        .map(|(key, _): (&String, &Option<Bytes>)| key.clone())
                        .take_while(|key| key.starts_with(&prefix))
                        .collect();
                    fields.extend(new.into_iter().map(|key| (key, None)));
                    fields.extend(entries.iter().map(|(field, entry)| (self.place.field(actor, field, entry), None)));
                }
            }
        }
        for (key, value) in fields {
            out = match value {
                Some(value) => out.put(key, value),
                None => out.remove(key),
            };
        }
        for write in &commit.writes {
            out = self.write(out, write)?;
        }
        Ok(out)
    }

    fn write<A: Name, M: Serialize + Clone>(
        &self,
        out: JournalCommit,
        write: &Write<A, M>,
    ) -> Result<JournalCommit, StoreError> {
        let place = &self.place;
        Ok(match write {
            Write::Append { lane, number, envelope } => {
                let log = place.lane(*lane);
                let out = match number {
                    // The first one makes the lane known.
                    1 => out.put(place.lane_mark(*lane), encode(&log, lane)?),
                    _ => out,
                };
                let entry = self.fitting(&log, encode(&log, envelope)?)?;
                out.append(log, entry)
            }
            Write::Receipts { from, life, low, above } => {
                let key = place.receipts(*from);
                let value = encode(&key, &(from, life, low, above))?;
                out.put(key, value)
            }
            Write::Presence { actor, presence } => {
                let (alive, dead) = (place.present(actor), place.tombstone(actor));
                match presence {
                    None => out.remove(alive).remove(dead),
                    Some(presence) => {
                        let (here, there) = if presence.halted { (dead, alive) } else { (alive, dead) };
                        let value = encode(&here, &(actor, presence))?;
                        out.put(here, value).remove(there)
                    }
                }
            }
            Write::Defer(deferred) => {
                let key = place.deferred(&deferred.envelope.to, deferred.slot);
                let value = encode(&key, deferred)?;
                out.put(key, value)
            }
            Write::Undefer { actor, slot } => out.remove(place.deferred(actor, *slot)),
            Write::Park(parked) => {
                let key = place.parked_at(parked.slot);
                let error = shortened(&parked.error, PARKED_ERROR_BYTES_MAX).to_owned();
                let value = encode(&key, &Parked { error, ..parked.clone() })?;
                out.put(key, value)
            }
            Write::Unpark(slot) => out.remove(place.parked_at(*slot)),
            Write::Arm(timer) => {
                let key = place.timer(timer.due, timer.slot);
                let value = self.fitting(&key, encode(&key, timer)?)?;
                out.put(key, value)
            }
            Write::Disarm { due, slot } => out.remove(place.timer(*due, *slot)),
            Write::Record { recorded, .. } => {
                let log = place.answers();
                let entry = encode(&log, recorded)?;
                out.append(log, entry)
            }
            Write::Tie { bundle, .. } => {
                let log = place.bundles();
                let entry = encode(&log, bundle)?;
                out.append(log, entry)
            }
            Write::Forget(key) => out.remove(place.earlier_answer(key)),
            Write::Attempt(attempt) => {
                let key = place.attempt(&attempt.place);
                let value = encode(&key, attempt)?;
                out.put(key, value)
            }
            Write::EndAttempt(at) => out.remove(place.attempt(at)),
        })
    }

    /// What is to be a message, if its receiver can still defer or park it: those records are somewhat larger.
    fn fitting(&self, key: &str, value: Bytes) -> Result<Bytes, StoreError> {
        let bytes_max = self.journal.limits().value_bytes_max.saturating_sub(PARKED_BYTES_BESIDE);
        if value.len() > bytes_max {
            let (key, store, bytes) = (key.to_owned(), "the journal".to_owned(), value.len());
            return Err(StoreError::TooLarge { key, store, bytes, bytes_max });
        }
        Ok(value)
    }

    /// Shows every item under `prefix`.
    async fn each(
        &self,
        prefix: &str,
        mut look: impl FnMut(&str, &Bytes) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut after: Option<String> = None;
        loop {
            let page = self.journal.scan(prefix, after.as_deref(), scan::LIMIT_MAX, self.timeout).await?;
            for item in &page.items {
                look(&item.key, &item.versioned.value)?;
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    }
}

/// At most so many bytes of `text`.
fn shortened(text: &str, bytes_max: usize) -> &str {
    let mut end = bytes_max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Most bytes of a parked message's error.
const PARKED_ERROR_BYTES_MAX: usize = 1024;
/// What a parked or a deferred message has at most beside what was in its lane.
const PARKED_BYTES_BESIDE: usize = PARKED_ERROR_BYTES_MAX + 1024;
