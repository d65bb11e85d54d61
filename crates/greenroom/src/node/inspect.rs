//! One actor, looked into: what it does, what waits for it, and what it did last.

use std::future::ready;
use std::sync::mpsc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::Node;
use crate::actor::key::{ActorId, Key, Kind};
use crate::cluster::directory::{Entry, Whereabouts};
use crate::here::Here;
use crate::pids::key::Address;
use crate::shard::{Item, Shard, Slot};

pub use crate::shard::inspect::{Brought, Inspection, PastTurn, RunningTurn, WaitingMessage};

/// What a node knows of an actor.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Inspected {
    /// It is active here.
    Here(Box<Inspection>),
    /// It is on that node, or that node knows, as far as this one does.
    There(String),
    /// This node decides where it is, and it is not active.
    NotActive,
    /// This node decides where it is, and the cluster of this name has it.
    InCluster(String),
    /// It is here, and its thread does not answer within a second: a turn keeps it, without an await.
    Stuck {
        /// The thread.
        shard: u64,
    },
    /// This node does not know.
    Unknown,
}

impl Node {
    /// What this node knows of the actor `key` of `kind`. It is not activated by that, and its turns do not wait.
    pub fn inspect(&self, kind: &str, key: impl Into<Key>) -> impl Future<Output = Inspected> + Send {
        self.look_at(Kind::known(kind), key.into())
    }

    fn look_at(&self, kind: Option<Kind>, key: Key) -> BoxFuture<'_, Inspected> {
        match kind.map(|kind| ActorId::new(kind, key)) {
            Some(Ok(id)) => inspect(self.here(), id).boxed(),
            // Nobody can be active under it.
            Some(Err(_)) => ready(Inspected::NotActive).boxed(),
            None => ready(Inspected::Unknown).boxed(),
        }
    }
}

/// The same, for who is inside of the node.
pub(crate) async fn inspect(node: &Here, id: ActorId) -> Inspected {
    if let Some(address) = Address::parse(&id.key) {
        return match (address.node() == node.me(), node.home_of_spawned(&id.key), address.slot()) {
            (true, Some(home), Some(slot)) => ask(node, home.id, slot, 0, id).await,
            (false, ..) => named(node, address.node()),
            _ => Inspected::NotActive,
        };
    }
    let Some(directory) = node.directory() else { return Inspected::Unknown };
    let entry = Entry::new(id.clone());
    match directory.whereabouts(node.world().now(), &entry) {
        Whereabouts::Here { shard, slot: Some(slot), epoch } => ask(node, shard, slot, epoch.0, id).await,
        // Its shard has not made it yet, or it is on the move.
        Whereabouts::Here { slot: None, .. } => Inspected::Unknown,
        Whereabouts::There(other) => named(node, other),
        Whereabouts::NotActive => match owner_elsewhere(node, &entry) {
            Some(cluster) => Inspected::InCluster(cluster),
            None => Inspected::NotActive,
        },
        Whereabouts::Unknown => Inspected::Unknown,
    }
}

/// Returns the name of the other cluster that has the actor, as far as this node's ranges know.
fn owner_elsewhere(node: &Here, entry: &Entry) -> Option<String> {
    let owner = node.directory()?.owner_elsewhere(entry)?;
    let clusters = node.geo()?.clusters();
    clusters.name(owner).map(str::to_owned)
}

fn named(node: &Here, other: greenroom_protocols::node::NodeId) -> Inspected {
    match node.view().member(other) {
        Some(member) => Inspected::There(member.name.clone()),
        None => Inspected::Unknown,
    }
}

async fn ask(node: &Here, at: crate::shard::ShardId, slot: Slot, epoch: u64, id: ActorId) -> Inspected {
    let world = node.world();
    let until = world.now() + PATIENCE;
    let (sender, answer) = mpsc::channel();
    let look = move |shard: &Shard| {
        // Nobody waits any more if it comes too late.
        let _ = sender.send(shard.inspect(slot, epoch).filter(|found| found.actor == id.to_string()));
    };
    let Some((index, port)) = node.shards().iter().enumerate().find(|(_, port)| port.id == at) else {
        return Inspected::Unknown;
    };
    if port.push(Item::Run(Box::new(look))).is_err() {
        return Inspected::NotActive;
    }
    loop {
        match answer.try_recv() {
            Ok(Some(found)) => return Inspected::Here(Box::new(found)),
            Ok(None) => return Inspected::NotActive,
            Err(mpsc::TryRecvError::Disconnected) => return Inspected::NotActive,
            Err(mpsc::TryRecvError::Empty) if world.now() >= until => return Inspected::Stuck { shard: index as u64 },
            Err(mpsc::TryRecvError::Empty) => world.sleep_until(world.now() + POLL).await,
        }
    }
}

/// Time for a shard to answer.
const PATIENCE: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(2);
