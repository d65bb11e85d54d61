//! What the pool says to people.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::BlockingPool;
use crate::here::Here;
use crate::shard::stalls::Stall;

/// A node's pool of threads for what blocks, as [`Node::blocking_pool`](crate::Node::blocking_pool) tells it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct PoolStatus {
    /// Threads that there are.
    pub threads: usize,
    /// Threads that there may be now.
    pub threads_max: usize,
    /// Closures and methods that wait for one.
    pub waiting: usize,
    /// Those that had one since the node started.
    pub begun: u64,
    /// Why there may be so many threads, in words.
    pub why: String,
    /// Methods that keep their shard from all other actors and may want a thread, the worst first.
    pub stalls: Vec<StallingMethod>,
}

/// A method that keeps the shard of its actor from all others: it waits for something, or computes, without an await.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct StallingMethod {
    /// The kind and the method: `letter.seal`.
    pub method: String,
    /// How often since the node started, as far as was seen: a shard looks for such methods only after it was kept, and then at some turns.
    pub times: u64,
    /// For how long each time, in the mean, in microseconds.
    pub micros: u64,
    /// Whether it waits for most of that time, or computes.
    pub waits: bool,
}

/// The methods that keep shards from others, the worst first.
fn stalls(node: &Here) -> Vec<StallingMethod> {
    let mut all: BTreeMap<(&'static str, String), Stall> = BTreeMap::new();
    for (kind, stall) in node.gauges().iter().flat_map(|gauges| gauges.stalls().seen()) {
        all.entry((kind, stall.method.clone())).or_default().add(&stall);
    }
    let mut all: Vec<((&'static str, String), Stall)> = all.into_iter().collect();
    all.sort_by_key(|(_, stall)| Reverse(stall.waited + stall.computed));
    let stalling = |((kind, method), stall): ((&'static str, String), Stall)| {
        let method = format!("{kind}.{method}");
        StallingMethod { method, times: stall.times, micros: stall.each().as_micros() as u64, waits: stall.waits() }
    };
    all.into_iter().map(stalling).collect()
}

/// What the pool of `node` has.
pub(crate) fn status(node: &Here) -> PoolStatus {
    let pool = &node.part::<BlockingPool>().0;
    let counts = pool.counts();
    let why = match pool.why() {
        _ if counts.begun == 0 => "nothing has blocked yet".to_owned(),
        Some(why) => why,
        None => "the node's configuration says so".to_owned(),
    };
    PoolStatus {
        threads: counts.threads,
        threads_max: counts.threads_max,
        waiting: counts.waiting,
        begun: counts.begun,
        why,
        stalls: stalls(node),
    }
}
