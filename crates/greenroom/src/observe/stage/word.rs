//! What one node says of its stage.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::{EDGES_MAX, MINUTES, MOVES_MAX, TOP_MAX};
use crate::here::Here;
use crate::here::built_in::is_built_in;
use crate::here::heat::Hot;
use crate::observe::Observed;
use crate::observe::events::Moved;
use crate::shard::{Item, Shard, ShardPort};

/// Whom the actors of one shard talk with.
#[derive(Default)]
pub(crate) struct Talk {
    /// The heaviest edges between actors, by their hashes, and their messages a second; the heaviest first.
    pub(crate) edges: Vec<(u64, u64, f64)>,
    pub(crate) edges_left_out: usize,
    pub(crate) called: Vec<Called>,
}

/// How often actors of one kind ask something of those of another.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Called {
    pub(crate) from: String,
    pub(crate) to: String,
    /// Calls and sends a second: on one thread, between threads of a node, between nodes, between clusters.
    pub(crate) rates: [f64; 4],
}

/// A node's stage. Members that are missing, or of a later version, are passed over.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct StageWord {
    pub(super) shards: Vec<Seats>,
    /// Its hot actors, the hottest first.
    pub(super) hot: Vec<HotWord>,
    pub(super) hot_left_out: u64,
    /// By the hashes of two actors, messages a second between them.
    pub(super) edges: Vec<(u64, u64, f64)>,
    pub(super) edges_left_out: u64,
    pub(super) called: Vec<Called>,
    /// The last moves of the last hour, the last one first.
    pub(super) moves: Vec<MoveWord>,
    /// How many there were in each of the last minutes, this one first.
    pub(super) minutes: Vec<u32>,
}

/// What there is on one shard.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Seats {
    pub(super) busy: f64,
    /// Activations of the program's own kinds.
    pub(super) counts: BTreeMap<String, u64>,
    /// Whether it gave an answer; if not, a turn keeps it, and its hot actors are not known.
    pub(super) answers: bool,
    /// Whether its messages are sampled, so that it is known who talks with whom.
    pub(super) samples: bool,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct HotWord {
    pub(super) hash: u64,
    pub(super) actor: String,
    pub(super) shard: u16,
    pub(super) turns: f64,
    pub(super) failed: f64,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct MoveWord {
    pub(super) at: u64,
    pub(super) actor: String,
    pub(super) moved: Moved,
}

/// What a shard says when it is asked.
type Said = ((Vec<Hot>, usize), Option<Talk>);

impl StageWord {
    /// What `node` says, with at most `top` hot actors.
    pub(crate) async fn of(node: &Here, top: u32) -> Self {
        let top = (top as usize).min(TOP_MAX);
        let mut word = Self::default();
        let busy = node.part::<Observed>().busy().into_iter().chain(std::iter::repeat(0.0));
        for (gauges, busy) in node.gauges().iter().zip(busy) {
            let mut counts = BTreeMap::new();
            for (kind, active) in gauges.meters().active() {
                if active > 0 && !is_built_in(kind.name()) {
                    *counts.entry(kind.name().to_owned()).or_default() += active;
                }
            }
            word.shards.push(Seats { busy, counts, ..Seats::default() });
        }
        let said = of_shards(node, move |shard| (shard.hottest(top), shard.talk(edges_of(top)))).await;
        for (shard, said) in said {
            word.add(shard, said);
        }
        word.hot.sort_by(|a, b| b.turns.total_cmp(&a.turns));
        word.hot_left_out += word.hot.len().saturating_sub(top) as u64;
        word.hot.truncate(top);
        word.edges.sort_by(|a, b| b.2.total_cmp(&a.2));
        word.edges_left_out += word.edges.len().saturating_sub(edges_of(top)) as u64;
        word.edges.truncate(edges_of(top));
        word.remember_moves(node);
        word
    }

    fn add(&mut self, shard: u16, ((hot, left_out), talk): Said) {
        self.hot.extend(hot.into_iter().map(|Hot { hash, id, turns, failed }| HotWord {
            hash,
            actor: id.to_string(),
            shard,
            turns,
            failed,
        }));
        self.hot_left_out += left_out as u64;
        if let Some(seats) = self.shards.get_mut(usize::from(shard)) {
            (seats.answers, seats.samples) = (true, talk.is_some());
        }
        let Talk { edges, edges_left_out, called } = talk.unwrap_or_default();
        self.edges.extend(edges);
        self.edges_left_out += edges_left_out as u64;
        self.called.extend(called.into_iter().filter(|one| !is_built_in(&one.from) && !is_built_in(&one.to)));
    }

    fn remember_moves(&mut self, node: &Here) {
        self.minutes = node.events().moves_by_minute(MINUTES, node.wall());
        let moves = node.events().last_moves(MOVES_MAX).into_iter();
        let moves = moves.map(|(at, actor, moved)| MoveWord { at, actor, moved });
        self.moves = moves.filter(|one| node.wall().0.saturating_sub(one.at) < HOUR).collect();
    }
}

/// Edges that a node tells with so many hot actors.
fn edges_of(top: usize) -> usize {
    (top * 2).min(EDGES_MAX)
}

/// What each shard says that answers in time, with its number.
pub(super) async fn of_shards<T: Send + 'static>(
    node: &Here,
    look: impl Fn(&Shard) -> T + Clone + Send + 'static,
) -> Vec<(u16, T)> {
    let ask = |port: &ShardPort| {
        let (telling, told) = oneshot::channel();
        let look = look.clone();
        // Who does not wait any more need not know.
        let run = move |shard: &Shard| _ = telling.send(look(shard));
        port.push(Item::Run(Box::new(run))).ok().map(|()| told)
    };
    // All are asked before the first is waited for.
    let asked: Vec<_> = node.shards().iter().map(ask).collect();
    let until = node.world().now() + PATIENCE;
    let mut said = Vec::new();
    for (shard, told) in (0..).zip(asked) {
        let Some(told) = told else { continue };
        if let Either::Left((Ok(answer), _)) = select(told, pin!(node.world().sleep_until(until))).await {
            said.push((shard, answer));
        }
    }
    said
}

/// In milliseconds.
const HOUR: u64 = 3_600_000;
/// Time for a shard to answer: less than who looks waits for its node.
const PATIENCE: Duration = Duration::from_millis(300);
