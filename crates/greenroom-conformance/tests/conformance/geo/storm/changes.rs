//! The list of clusters changes while everything goes wrong.

use std::time::Duration;

use greenroom::{ClusterChange, ClusterStatus, Node};
use greenroom_sim::Sim;

use super::super::world::World;
use super::{WIDE, nodes};

/// How a cluster goes, and where the list is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Plan {
    leaves: Leaves,
    stored: bool,
}

/// How a cluster goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Leaves {
    /// It is drained and removed.
    Drained,
    /// It is lost, and taken out as such.
    Lost,
    /// It is cut off and lives, and is taken for lost.
    Cut,
}

impl Plan {
    /// One of all that there are.
    pub(super) fn of(seed: u64) -> Self {
        let leaves = [Leaves::Drained, Leaves::Lost, Leaves::Cut][seed as usize % 3];
        Self { leaves, stored: seed / 3 % 2 == 1 }
    }

    /// Whether the list is in a store that all clusters reach.
    pub(super) fn is_stored(self) -> bool {
        self.stored
    }
}

/// A cluster is added that never comes, and taken out; another one leaves and comes back.
pub(super) async fn change_list(sim: &Sim, world: &World, plan: Plan) {
    let (asia, at) = WIDE[2];
    until(sim, world, &[add("mars", &["m1"])], |all| find(all, "mars").is_some()).await;
    match plan.leaves {
        Leaves::Drained => {
            let leaves = [ClusterChange::Drain(asia.to_owned()), ClusterChange::Remove(asia.to_owned())];
            until(sim, world, &leaves, |all| find(all, asia).is_none()).await;
        }
        Leaves::Cut => {
            let others: Vec<&str> = WIDE[..2].iter().flat_map(|(_, nodes)| nodes).copied().collect();
            let gone = |all: &[ClusterStatus]| {
                // A fault may have healed it: then it answers, and is not lost.
                sim.partition(&at, &others);
                find(all, asia).is_none()
            };
            until(sim, world, &[lost(asia)], gone).await;
        }
        Leaves::Lost => {
            let gone = |all: &[ClusterStatus]| {
                // A fault may have had it started again.
                at.iter().for_each(|node| world.cluster(asia).stop(node));
                find(all, asia).is_none()
            };
            until(sim, world, &[lost(asia)], gone).await;
            for node in at {
                world.cluster(asia).restart(node);
            }
        }
    }
    if plan.leaves == Leaves::Cut {
        sim.heal();
    }
    let full = |all: &[ClusterStatus]| find(all, asia).is_some_and(|asia| !asia.joining && !asia.draining);
    until(sim, world, &[add(asia, &at)], full).await;
    until(sim, world, &[ClusterChange::Remove("mars".to_owned())], |all| find(all, "mars").is_none()).await;
}

fn find<'a>(all: &'a [ClusterStatus], name: &str) -> Option<&'a ClusterStatus> {
    all.iter().find(|cluster| cluster.name == name)
}

fn lost(name: &str) -> ClusterChange {
    ClusterChange::RemoveLost { clusters: vec![name.to_owned()], vouch: false }
}

fn add(name: &str, at: &[&str]) -> ClusterChange {
    ClusterChange::Add(name.to_owned(), at.iter().map(|node| format!("{node}:7300")).collect())
}

/// Makes these changes, one after the other, until the nodes of the clusters that stay see what they are for: a node may be lost with a
/// change that it has told nobody.
async fn until(sim: &Sim, world: &World, changes: &[ClusterChange], sees: impl Fn(&[ClusterStatus]) -> bool) {
    loop {
        let of = |name: &&str| WIDE[..2].iter().find_map(|(cluster, _)| world.cluster(cluster).node(name));
        let all: Vec<Node> = WIDE[..2].iter().flat_map(|(_, nodes)| nodes).filter_map(of).collect();
        let seen = |node: &Node| node.multi_cluster().is_some_and(|status| sees(&status.clusters));
        if all.len() == WIDE[..2].iter().map(|(_, nodes)| nodes.len()).sum::<usize>() && all.iter().all(seen) {
            return;
        }
        for wish in changes {
            change(sim, world, wish).await;
        }
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
}

/// Has some node make a change of the list, if one does now.
async fn change(sim: &Sim, world: &World, change: &ClusterChange) {
    let mut refused = None;
    for (cluster, name) in nodes() {
        let Some(node) = world.cluster(cluster).node(name) else { continue };
        match node.change_clusters(change).await {
            Ok(_) => return sim.note(format_args!("{name} has made the change {change:?}")),
            Err(why) => {
                let elsewhere = why.to_string().contains("changes are made at");
                refused = Some(why).filter(|_| !elsewhere).or(refused);
            }
        }
    }
    if let Some(why) = refused {
        sim.note(format_args!("{change:?} is refused: {why}"));
    }
}
