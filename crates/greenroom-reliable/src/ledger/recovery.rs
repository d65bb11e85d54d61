//! Taking a partition over: first its fence, then what it recovers from.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use greenroom_protocols::delivery::{
    Bundle, Deferred, Epoch, Kept, Lane, Life, Loose, Ownership, Parked, PartitionId, Presence, Receipts, Recorded,
    Recovered, Timer, TurnAttempt,
};
use greenroom_protocols::reminders::Wall;
use greenroom_store::journal::ENTRIES_MAX;
use greenroom_store::{Journal, StoreError};
use serde::de::DeserializeOwned;

use super::records::{Earlier, Fence, decode};
use super::{Ledger, Name, OwnerProcess, Place};

pub(super) async fn take<A, M>(
    journal: Arc<dyn Journal>,
    place: Place,
    owner: OwnerProcess<'_>,
    now: Wall,
    timeout: Duration,
) -> Result<(Ledger, Recovered<A, M>), StoreError>
where
    A: Name,
    M: DeserializeOwned,
{
    let key = place.fence();
    let found = journal.read(&key, timeout).await?;
    let before = found.as_ref().map(|found| Fence::decode(&key, &found.value)).transpose()?;
    let may_have_died = |before: &Fence| before.process != Some(owner.number) || before.after_death;
    let after_death = before.as_ref().is_some_and(|before| !before.is_left && may_have_died(before));
    let fence = Fence {
        epoch: Epoch(before.as_ref().map_or(1, |before| before.epoch.0 + 1)),
        // A new one is higher than that of any journal that was lost.
        life: before.as_ref().map_or(Life(now.0), |before| before.life),
        owner: owner.name.to_owned(),
        answers_since: Some(before.as_ref().and_then(|before| before.answers_since).unwrap_or(now)),
        process: Some(owner.number),
        is_left: false,
        after_death,
    };
    let process = owner.number;
    let value = fence.encode(&key)?;
    let version = match found {
        None => journal.create(&key, value, timeout).await?,
        Some(found) => journal.replace(&key, value, &found.version, timeout).await?,
    };
    let owner = Ownership { partition: place.partition(), epoch: fence.epoch };
    let (life, since) = (fence.life, fence.answers_since.unwrap_or(now));
    let ledger = Ledger { journal, place, owner, life, fence: Some(version), record: fence, timeout };
    let recovered = ledger.recovered(since).await?;
    Ok((ledger, Recovered { process, after_death, ..recovered }))
}

impl Ledger {
    async fn recovered<A: Name, M: DeserializeOwned>(
        &self,
        answers_since: Wall,
    ) -> Result<Recovered<A, M>, StoreError> {
        let mut recovered = Recovered::empty(self.life);
        for lane in self.lanes().await? {
            let log = self.place.lane(lane);
            let last = self.journal.end(&log, self.timeout).await? - 1;
            let first = self.journal.entries(&log, 1, 1, self.timeout).await?;
            let before = first.first().map_or(last, |entry| entry.position - 1);
            recovered.lanes.push((lane, before, last));
        }
        self.each(&self.place.all_receipts(), |key, value| {
            let (from, life, low, above) = decode::<(PartitionId, Life, u64, Vec<(u64, u64)>)>(key, value)?;
            recovered.receipts.push((from, Receipts::from_ranges(life, low, &above)));
            Ok(())
        })
        .await?;
        let mut queued = BTreeSet::new();
        self.each(&self.place.all_deferred(), |key, value| {
            let envelope = decode::<Deferred<A, M>>(key, value)?.envelope;
            recovered.waiting.extend(envelope.call.clone().filter(|call| call.recorded));
            queued.insert(envelope.to.clone());
            Ok(())
        })
        .await?;
        recovered.queued = queued.into_iter().collect();
        self.each(&self.place.tombstones(), |key, value| {
            recovered.tombstones.push(decode::<(A, Presence)>(key, value)?);
            Ok(())
        })
        .await?;
        recovered.answers = self.kept(answers_since).await?;
        self.each(&self.place.timers(), |key, value| {
            recovered.timers.push(decode::<Timer<A, M>>(key, value)?);
            Ok(())
        })
        .await?;
        self.each(&self.place.parked(), |key, value| {
            let Parked { slot, leaves, .. } = decode::<Parked<A, M>>(key, value)?;
            recovered.parked.push((slot, leaves));
            Ok(())
        })
        .await?;
        recovered.attempts = self.attempts().await?;
        Ok(recovered)
    }

    /// The lanes that have ever had a message.
    pub(super) async fn lanes(&self) -> Result<Vec<Lane>, StoreError> {
        let mut lanes = Vec::new();
        self.each(&self.place.lanes(), |key, value| {
            lanes.push(decode(key, value)?);
            Ok(())
        })
        .await?;
        Ok(lanes)
    }

    /// The attempts at turns.
    pub(super) async fn attempts(&self) -> Result<Vec<TurnAttempt>, StoreError> {
        let mut attempts = Vec::new();
        self.each(&self.place.attempts(), |key, value| {
            attempts.push(decode(key, value)?);
            Ok(())
        })
        .await?;
        Ok(attempts)
    }

    /// What is kept of recorded answers: all bundles, and of the answers those behind the last bundle.
    async fn kept<M: DeserializeOwned>(&self, answers_since: Wall) -> Result<Kept<M>, StoreError> {
        let mut kept = Kept { earlier_since: answers_since, ..Kept::none() };
        let (answers, bundles) = (self.place.answers(), self.place.bundles());
        kept.bundle_last = self.journal.end(&bundles, self.timeout).await? - 1;
        self.each_entry(&bundles, 1, |number, value| {
            kept.bundles.push((number, decode(&bundles, value)?));
            Ok(())
        })
        .await?;
        kept.last = self.journal.end(&answers, self.timeout).await? - 1;
        let from = kept.bundles.last().map_or(1, |(_, bundle): &(u64, Bundle)| bundle.last() + 1);
        self.each_entry(&answers, from, |number, value| {
            let Recorded::<M> { key, at, .. } = decode(&answers, value)?;
            kept.loose.push(Loose { number, key, at, bytes: value.len() as u64 });
            Ok(())
        })
        .await?;
        self.each(&self.place.earlier_answers(), |name, value| {
            let Earlier { key, request, answer } = decode(name, value)?;
            // Calls that wait are known from the queues.
            kept.earlier.extend(answer.map(|answer| Recorded { key, request, at: Wall::default(), answer }));
            Ok(())
        })
        .await?;
        Ok(kept)
    }

    /// Shows every entry of a log from `from` on.
    async fn each_entry(
        &self,
        log: &str,
        mut from: u64,
        mut look: impl FnMut(u64, &[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        loop {
            let entries = self.journal.entries(log, from, ENTRIES_MAX, self.timeout).await?;
            let Some(last) = entries.last() else { return Ok(()) };
            from = last.position + 1;
            for entry in &entries {
                look(entry.position, &entry.value)?;
            }
        }
    }
}
