//! What a node's turns wait for: for who looks for deadlocks and for what takes long.

use std::sync::mpsc;
use std::time::Duration;

use futures_util::FutureExt;
use serde::{Deserialize, Serialize};

use super::Node;
use crate::here::Here;
use crate::shard::Item;
pub use crate::shard::waits::LongTurn;

/// The turns of one node that have run for long, and who waits for them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Waits {
    /// The node.
    pub node: String,
    /// The turns, the longest first; at most 1024 of each thread.
    pub turns: Vec<LongTurn>,
    /// Threads that did not answer in time: a turn keeps them, without an await.
    pub stuck_shards: Vec<u64>,
}

impl Node {
    /// The turns of this node that have run for `over`, and who waits for them. Threads that do not answer within a second
    /// are named: a turn computes there, or blocks.
    pub fn waits(&self, over: Duration) -> impl Future<Output = Waits> + Send {
        waits(self.here(), over).boxed()
    }
}

/// The same, for who is inside of the node.
pub(crate) async fn waits(node: &Here, over: Duration) -> Waits {
    let world = node.world();
    let until = world.now() + PATIENCE;
    let (sender, answers) = mpsc::channel();
    for (index, port) in node.shards().iter().enumerate() {
        let sender = sender.clone();
        let ask = move |shard: &crate::shard::Shard| {
            // Nobody waits any more if it comes too late.
            let _ = sender.send((index, shard.long_turns(over, TURNS_MAX)));
        };
        let _ = port.push(Item::Run(Box::new(ask)));
    }
    let mut silent: Vec<bool> = vec![true; node.shards().len()];
    let mut turns = Vec::new();
    loop {
        while let Ok((index, told)) = answers.try_recv() {
            silent[index] = false;
            turns.extend(told);
        }
        if !silent.contains(&true) || world.now() >= until {
            break;
        }
        world.sleep_until(world.now() + POLL).await;
    }
    turns.sort_by(|one, other| other.running_seconds.total_cmp(&one.running_seconds));
    let stuck_shards =
        silent.iter().enumerate().filter(|(_, silent)| **silent).map(|(index, _)| index as u64).collect();
    Waits { node: node.name().to_owned(), turns, stuck_shards }
}

/// Time for a shard to answer.
const PATIENCE: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(2);
/// Turns that one shard tells of.
const TURNS_MAX: usize = 1024;
