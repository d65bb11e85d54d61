//! What a node has seen of its turns as they end, for one who follows them.

use serde::{Deserialize, Serialize};

use super::turns::TurnWord;
use crate::here::Here;
use crate::here::tail::{KEPT_MAX, Meant, Taken};
use crate::shard::{Item, Shard};

/// What a node has seen of the turns that are meant.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TailWord {
    /// How many since it is asked.
    pub(super) matched: u64,
    /// The first of those since it was asked last.
    pub(super) turns: Vec<TurnWord>,
}

impl TailWord {
    pub(super) fn of(node: &Here, id: u64, meant: &Meant) -> Self {
        let now = node.world().now();
        let mut all = Taken::default();
        for (gauges, port) in node.gauges().iter().zip(node.shards()) {
            match gauges.tail().take(now, id, meant) {
                Some(Taken { matched, turns }) => {
                    all.matched += matched;
                    all.turns.extend(turns);
                }
                // A shard that is closed has no turns.
                None => drop(port.push(Item::Run(Box::new(Shard::begin_to_tell)))),
            }
        }
        all.turns.sort_by_key(|one| one.noted);
        all.turns.truncate(KEPT_MAX);
        let turns = all.turns.iter().map(|one| TurnWord::ended(node, one)).collect();
        Self { matched: all.matched, turns }
    }
}
