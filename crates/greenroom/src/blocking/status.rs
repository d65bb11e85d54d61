//! What the pool says to people.

use serde::Serialize;

use super::BlockingPool;
use crate::here::Here;

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
    }
}
