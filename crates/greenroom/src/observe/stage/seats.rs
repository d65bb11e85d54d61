//! Who the ends of edges are that no node has told among its hot actors.

use std::collections::BTreeMap;

use super::word::{HotWord, of_shards};
use crate::here::Here;
use crate::here::built_in::is_built_in;

/// Those of the actors with these hashes that are active at `node`. Their turns are 0 where they have so few that their shard does not count them.
pub(crate) async fn seats(node: &Here, actors: &[u64]) -> Vec<HotWord> {
    let Some(directory) = node.directory() else { return Vec::new() };
    let hosted = actors.iter().take(ASKED_MAX).filter_map(|hash| Some((*hash, directory.hosted(*hash)?)));
    let mut seats = Vec::new();
    for (hash, hosted) in hosted.filter(|(_, hosted)| !is_built_in(hosted.id.kind.name())) {
        let shard = node.shards().iter().position(|port| port.id == hosted.shard);
        let Some(shard) = shard.and_then(|shard| u16::try_from(shard).ok()) else { continue };
        seats.push(HotWord { hash, actor: hosted.id.to_string(), shard, ..HotWord::default() });
    }
    let hashes: Vec<u64> = seats.iter().map(|seat| seat.hash).collect();
    let counted = of_shards(node, move |shard| shard.heat_of(&hashes)).await;
    let counted: BTreeMap<u64, (f64, f64)> =
        counted.into_iter().flat_map(|(_, heats)| heats).map(|hot| (hot.hash, (hot.turns, hot.failed))).collect();
    for seat in &mut seats {
        (seat.turns, seat.failed) = counted.get(&seat.hash).copied().unwrap_or_default();
    }
    seats
}

/// Actors that are looked for at once: no more than half of those that are told.
const ASKED_MAX: usize = super::TOP_MAX;
