//! The actors that other clusters call far more than this one, for who can let them go there.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use greenroom_protocols::gsi::ClusterId;
use serde::Serialize;
use tokio::sync::oneshot;

use super::anchors::{Anchor, destinations};
use super::moved::MovedActor;
use super::on_shard::OnShard;
use super::settings::OptimiserMode;
use super::tables::Tables;
use super::{Common, Locality};
use crate::actor::interface::Travels;
use crate::actor::key::{ActorId, Kind};
use crate::here::Here;
use crate::shard::{Item, Shard};

/// An actor that one other cluster calls far more than this one.
pub(crate) struct Called {
    pub(crate) id: ActorId,
    pub(crate) by: ClusterId,
    /// Whether it may live there. What is counted of it begins anew then.
    pub(crate) goes: bool,
}

/// The actors of this node that one other cluster calls far more than this one, but for those that are to stay for now. `may_go` says which kinds
/// live in a store that is the same for all clusters.
pub(crate) async fn called_from_abroad(
    node: &Here,
    may_go: impl Fn(&Here, Kind) -> bool + Clone + Send + 'static,
) -> Vec<Called> {
    let mut all = Vec::new();
    let common = &node.part::<Locality>().0;
    if common.mode != OptimiserMode::On || common.exchanges.is_paused() {
        return all;
    }
    for port in node.shards() {
        let ((told, telling), may_go) = (oneshot::channel(), may_go.clone());
        let run = move |shard: &Shard| {
            let known: &OnShard = shard.part();
            let wishes = known.with_mut(|_, tables| tables.take_called(shard, may_go)).unwrap_or_default();
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
        ago_s: 0.0,
        gain: 0,
        cost: 0,
        why: "that cluster makes most of its calls",
    };
    common.moved.note(node, moved, node.world().now());
}

/// Actors of these kinds, so many of each, are called mostly from the cluster of that name, and stay: what a home there would save.
pub(crate) fn far_from_callers(node: &Here, kinds: BTreeMap<(String, String), usize>) {
    let far = |((kind, cluster), actors): ((String, String), usize)| FarKind { kind, cluster, actors };
    let all = kinds.into_iter().map(far).collect();
    *node.part::<Locality>().0.far.lock().unwrap_or_else(PoisonError::into_inner) = all;
}

/// Actors of a node that are called mostly from another cluster, and do not go there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct FarKind {
    /// Their kind. It would save these calls the way between the clusters if it had its home there.
    pub kind: String,
    /// The name of the cluster that calls them.
    pub cluster: String,
    /// How many they are.
    pub actors: usize,
}

impl Tables {
    fn take_called(&mut self, shard: &Shard, may_go: impl Fn(&Here, Kind) -> bool) -> Vec<Called> {
        let node = &shard.port().node;
        let wishes: Vec<(u64, ClusterId)> = self.callers.wishes().collect();
        let goes = |(hash, by): (u64, ClusterId)| {
            let Some(hosted) = node.directory()?.hosted(hash) else {
                self.callers.forget(hash);
                return None;
            };
            let goes = in_a_store(node, &hosted.id) && may_go(node, hosted.id.kind);
            if goes {
                self.callers.forget(hash);
            }
            let stays = self.pins.holds(hash, shard.now())
                || hosted.shard != shard.id()
                || shard.held_here(hosted.slot?).is_some();
            (!stays).then_some(Called { id: hosted.id, by, goes })
        };
        wishes.into_iter().filter_map(goes).collect()
    }
}

/// Whether an actor may live in whichever cluster calls it most: all of it is in a store, and nobody has said where it is to be.
fn in_a_store(node: &Here, id: &ActorId) -> bool {
    let in_a_store = node.kinds().travels(id.kind) == Travels::ByStore;
    // Where in its cluster it is to be is another matter.
    in_a_store && matches!(destinations(node, id.kind), Ok(_) | Err(Anchor::Placed(_)))
}
