//! The question whether a cluster's partitions hold anything that would be missed with the cluster.

use std::collections::BTreeSet;
use std::time::Duration;

use greenroom_protocols::delivery::{Lane, PartitionId};
use greenroom_store::{Journal, StoreError};

use super::Place;
use super::names::cluster_prefix;
use super::records::decode;

/// Returns true if a partition of `cluster` holds anything: an actor's state, a created actor, a message that waits, is parked
/// or is not acknowledged, a timer, or a recorded answer. Fences, receipts and the tombstones of halted actors do not count.
///
/// # Errors
/// [`StoreError`].
pub async fn is_occupied(journal: &dyn Journal, cluster: &str, timeout: Duration) -> Result<bool, StoreError> {
    let prefix = cluster_prefix(cluster);
    let (mut used, mut lanes) = (BTreeSet::new(), Vec::new());
    let mut after: Option<String> = None;
    loop {
        let page = journal.scan(&prefix, after.as_deref(), PAGE_LEN, timeout).await?;
        for item in &page.items {
            let mut parts = item.key.strip_prefix(&prefix).unwrap_or_default().splitn(3, '/');
            let Some(partition) = parts.next().and_then(|number| number.parse().ok()) else { continue };
            let place = Place::new(cluster, PartitionId(partition));
            match parts.next().unwrap_or_default() {
                "state" | "present" | "deferred" | "parked" | "timer" | "answer" => return Ok(true),
                "lane" => lanes.push(place.lane(decode::<Lane>(&item.key, &item.versioned.value)?)),
                _ => {}
            }
            used.insert(partition);
        }
        match page.next {
            Some(next) => after = Some(next.to_string()),
            None => break,
        }
    }
    // An unacknowledged message is an entry of its lane's log, and a recorded answer one of its partition's.
    let answers = used.into_iter().map(|partition| Place::new(cluster, PartitionId(partition)).answers());
    for log in answers.chain(lanes) {
        if !journal.entries(&log, 1, 1, timeout).await?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Items per page; most looks end with the first page.
const PAGE_LEN: usize = 64;
