//! Taking a partition over: first its fence, then what it recovers from.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use greenroom_protocols::delivery::{
    Deferred, Epoch, Lane, Life, Ownership, Parked, PartitionId, Presence, Receipts, Recorded, Recovered, Timer,
};
use greenroom_store::{Journal, StoreError};
use serde::de::DeserializeOwned;

use super::records::{Fence, decode, encode};
use super::{Ledger, Name, Place};

pub(super) async fn take<A, M>(
    journal: Arc<dyn Journal>,
    place: Place,
    owner: &str,
    new_life: Life,
    timeout: Duration,
) -> Result<(Ledger, Recovered<A, M>), StoreError>
where
    A: Name,
    M: DeserializeOwned,
{
    let key = place.fence();
    let found = journal.read(&key, timeout).await?;
    let (fence, version) = match found {
        None => {
            let fence = Fence { epoch: Epoch(1), life: new_life, owner: owner.to_owned() };
            let value = encode(&key, &fence)?;
            (fence, journal.create(&key, value, timeout).await?)
        }
        Some(found) => {
            let Fence { epoch, life, .. } = decode(&key, &found.value)?;
            let fence = Fence { epoch: Epoch(epoch.0 + 1), life, owner: owner.to_owned() };
            let value = encode(&key, &fence)?;
            (fence, journal.replace(&key, value, &found.version, timeout).await?)
        }
    };
    let owner = Ownership { partition: place.partition(), epoch: fence.epoch };
    let ledger = Ledger { journal, place, owner, life: fence.life, fence: Some(version), timeout };
    let recovered = ledger.recovered().await?;
    Ok((ledger, recovered))
}

impl Ledger {
    async fn recovered<A: Name, M: DeserializeOwned>(&self) -> Result<Recovered<A, M>, StoreError> {
        let mut recovered = Recovered::empty(self.life);
        let mut lanes: Vec<Lane> = Vec::new();
        self.each(&self.place.lanes(), |key, value| {
            lanes.push(decode(key, value)?);
            Ok(())
        })
        .await?;
        for lane in lanes {
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
            queued.insert(decode::<Deferred<A, M>>(key, value)?.envelope.to);
            Ok(())
        })
        .await?;
        recovered.queued = queued.into_iter().collect();
        self.each(&self.place.tombstones(), |key, value| {
            recovered.tombstones.push(decode::<(A, Presence)>(key, value)?);
            Ok(())
        })
        .await?;
        self.each(&self.place.answers(), |key, value| {
            recovered.answers.push(decode::<Recorded<M>>(key, value)?);
            Ok(())
        })
        .await?;
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
        Ok(recovered)
    }
}
