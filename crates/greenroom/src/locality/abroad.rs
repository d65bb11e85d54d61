//! The actors that other clusters call far more than this one, for who can let them go there.

use greenroom_protocols::gsi::ClusterId;
use tokio::sync::oneshot;

use super::anchors::{Anchor, destinations};
use super::moved::MovedActor;
use super::on_shard::OnShard;
use super::settings::OptimiserMode;
use super::tables::Tables;
use super::{Common, Locality};
use crate::actor::interface::Travels;
use crate::actor::key::ActorId;
use crate::here::Here;
use crate::shard::{Item, Shard};

/// The actors of this node whose state is in a store, and which one other cluster calls far more than this one: what is counted of
/// them begins anew.
pub(crate) async fn called_from_abroad(node: &Here) -> Vec<(ActorId, ClusterId)> {
    let mut all = Vec::new();
    let common = &node.part::<Locality>().0;
    if common.mode != OptimiserMode::On || common.exchanges.is_paused() {
        return all;
    }
    for port in node.shards() {
        let (told, telling) = oneshot::channel();
        let run = move |shard: &Shard| {
            let known: &OnShard = shard.part();
            let wishes = known.with_mut(|_, tables| tables.take_called(shard)).unwrap_or_default();
            // Who does not wait any more need not know.
            let _ = told.send(wishes);
        };
        if port.push(Item::Run(Box::new(run))).is_ok()
            && let Ok(wishes) = telling.await
        {
            all.extend(wishes);
        }
    }
    all
}

/// An actor of this node has been given up for the cluster that calls it most.
pub(crate) fn gave_way(node: &Here, id: &ActorId, cluster: &str) {
    let common: &Common = &node.part::<Locality>().0;
    let moved = MovedActor {
        number: 0,
        actor: id.to_string(),
        from: node.name().to_owned(),
        to: format!("cluster {cluster}"),
        shards: None,
        at_s: 0.0,
        gain: 0,
        cost: 0,
        why: "that cluster makes most of its calls",
    };
    common.moved.note(moved, node.world().now());
}

impl Tables {
    fn take_called(&mut self, shard: &Shard) -> Vec<(ActorId, ClusterId)> {
        let node = &shard.port().node;
        let wishes: Vec<(u64, ClusterId)> = self.callers.wishes().collect();
        let goes = |(hash, cluster): (u64, ClusterId)| {
            self.callers.forget(hash);
            let hosted = node.directory()?.hosted(hash)?;
            let stays = self.pins.holds(hash, shard.now())
                || hosted.shard != shard.id()
                || shard.held_here(hosted.slot?).is_some()
                || !may_go(node, &hosted.id);
            (!stays).then_some((hosted.id, cluster))
        };
        wishes.into_iter().filter_map(goes).collect()
    }
}

/// Whether an actor may live in whichever cluster calls it most: all of it is in a store, and nobody has said where it is to be.
fn may_go(node: &Here, id: &ActorId) -> bool {
    let in_a_store = node.kinds().travels(id.kind) == Travels::ByStore;
    // Where in its cluster it is to be is another matter.
    in_a_store && matches!(destinations(node, id.kind), Ok(_) | Err(Anchor::Placed(_)))
}
