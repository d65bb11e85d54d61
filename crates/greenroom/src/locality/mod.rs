//! The optimiser: which actors talk with each other, and who would do better elsewhere (after ActOp, EuroSys '16).
//!
//! Each shard samples its messages (`shard/sampling.rs`) and keeps, for the actors that are sent most, where their last messages went,
//! and the heaviest edges between them (`on_shard.rs`, around the machines `flows` and `heavy_edges` of `greenroom_protocols`). All of it is advice:
//! what is counted twice, late or not at all makes nothing wrong.

mod abroad;
mod advice;
mod anchors;
mod arrivals;
mod between_shards;
mod driver;
mod exchanges;
mod leavers;
mod moved;
mod on_shard;
mod orders;
mod places;
pub(crate) mod settings;
mod survey;
mod tables;
mod talk;
mod word;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use greenroom_protocols::node::NodeId;
use greenroom_world::Stage;

pub use self::abroad::FarKind;
pub(crate) use self::abroad::{Called, called_from_abroad, far_from_callers, gave_way};
use self::advice::ask;
pub use self::advice::{ActorAdvice, Advice, Edge, Judged, KindAdvice, ShardAdvice, Wish};
pub(crate) use self::advice::{advice, explain};
use self::arrivals::Arrivals;
use self::exchanges::{Exchanges, Happening};
use self::leavers::Leavers;
use self::moved::Log;
pub use self::moved::MovedActor;
use self::on_shard::OnShard;
use self::places::Places;
use self::settings::OptimiserMode;
use crate::cluster::view::ClusterView;
use crate::here::Here;
use crate::here::figures::Figures;
use crate::here::parts::Part;
use crate::shard::parts::ShardPart;
use crate::shard::sampling::Place;

/// A node's part.
pub(crate) struct Locality(Arc<Common>);

/// What the shards of a node share.
pub(super) struct Common {
    mode: OptimiserMode,
    places: Places,
    counts: Counts,
    exchanges: Exchanges,
    arrivals: Arrivals,
    moved: Log,
    leavers: Leavers,
    between_shards: between_shards::Counts,
    /// Actors that other clusters call, and that stay.
    far: Mutex<Vec<FarKind>>,
}

/// What has been sampled, weighted by the messages that a sample stands for, since the node started.
#[derive(Default)]
struct Counts {
    near: AtomicU64,
    beside: AtomicU64,
    away: AtomicU64,
    abroad: AtomicU64,
    /// Samples that were taken.
    taken: AtomicU64,
    /// Moves that were worth it, and those that were not.
    paid: AtomicU64,
    unpaid: AtomicU64,
}

impl Counts {
    /// Moves have been judged.
    fn judged(&self, paid: u64, unpaid: u64) {
        self.paid.fetch_add(paid, Ordering::Relaxed);
        self.unpaid.fetch_add(unpaid, Ordering::Relaxed);
    }

    fn note(&self, place: Place, messages: u64) {
        let count = match place {
            Place::Near => &self.near,
            Place::Shard(_) => &self.beside,
            Place::Node(_) => &self.away,
            Place::Cluster(_) => &self.abroad,
            // They have no place.
            Place::Outside => return,
        };
        count.fetch_add(messages, Ordering::Relaxed);
        self.taken.fetch_add(1, Ordering::Relaxed);
    }
}

impl Locality {
    pub(crate) fn new(mode: OptimiserMode) -> Self {
        Self(Arc::new(Common {
            mode,
            places: Places::default(),
            counts: Counts::default(),
            exchanges: Exchanges::new(),
            arrivals: Arrivals::default(),
            moved: Log::default(),
            leavers: Leavers::default(),
            between_shards: between_shards::Counts::default(),
            far: Mutex::default(),
        }))
    }
}

/// The actors that the optimiser of `node` has last moved.
pub(crate) fn moved(node: &Here) -> Vec<MovedActor> {
    node.part::<Locality>().0.moved.last(node.world().now())
}

/// Lets the optimiser of `node` take part in no exchange, or go on.
pub(crate) fn pause(node: &Here, paused: bool) {
    node.part::<Locality>().0.exchanges.pause(paused);
}

impl Part for Locality {
    fn start(&self, here: &Arc<Here>) {
        self.0.moved.begin(here.world().now());
        if self.0.mode == OptimiserMode::On
            && let Some(happenings) = self.0.exchanges.take_happenings()
        {
            let driving = driver::drive(here.clone(), self.0.clone(), happenings);
            let driving = here.clone().vital("its optimiser", driving);
            here.world().spawn(Stage::Door, Box::pin(driving));
            if here.config().optimiser.shards && here.shards().len() > 1 {
                let gathering = between_shards::drive(here.clone(), self.0.clone());
                let gathering = here.clone().vital("its optimiser", gathering);
                here.world().spawn(Stage::Door, Box::pin(gathering));
            }
        }
    }

    fn channel(&self) -> Option<u8> {
        Some(word::CHANNEL)
    }

    fn told(&self, _: &Arc<Here>, from: NodeId, payload: &[u8]) {
        if self.0.mode == OptimiserMode::On {
            self.0.exchanges.happens(Happening::Told { from, payload: Bytes::copy_from_slice(payload) });
        }
    }

    fn on_shard(&self) -> Option<Box<dyn ShardPart>> {
        (self.0.mode != OptimiserMode::Off).then(|| Box::new(OnShard::new(self.0.clone())) as Box<dyn ShardPart>)
    }

    fn viewed(&self, view: &Arc<ClusterView>) {
        // Shards hear of it when they next look.
        self.0.places.retain(|node| view.view.is_active(node));
        self.0.exchanges.happens(Happening::Changed);
    }

    fn report(&self, figures: &mut Figures) {
        if self.0.mode == OptimiserMode::Off {
            return;
        }
        let Counts { near, beside, away, abroad, taken, paid, unpaid } = &self.0.counts;
        for (name, help, count) in [
            ("greenroom_messages_near_total", "Messages between actors of one shard, by samples.", near),
            ("greenroom_messages_beside_total", "Messages between shards of this node, by samples.", beside),
            ("greenroom_messages_away_total", "Messages from and to other nodes, by samples.", away),
            ("greenroom_messages_abroad_total", "Calls from other clusters, by samples.", abroad),
            ("greenroom_optimiser_samples_total", "Messages that were sampled.", taken),
            ("greenroom_optimiser_moves_paid_total", "Moves that have saved as many messages as they cost.", paid),
            ("greenroom_optimiser_moves_unpaid_total", "Moves that have not.", unpaid),
            (
                "greenroom_optimiser_moves_between_shards_total",
                "Actors that it has moved to other shards of this node.",
                &self.0.between_shards.moved,
            ),
        ] {
            figures.count(name, help, count.load(Ordering::Relaxed));
        }
        let exchanges::Counts { moved, arrived, back, stayed, done, fruitless, failed } = &self.0.exchanges.counts;
        for (name, help, count) in [
            ("greenroom_optimiser_moves_total", "Actors that the optimiser has moved to other nodes.", moved),
            ("greenroom_optimiser_arrivals_total", "Actors that it has brought here.", arrived),
            ("greenroom_optimiser_moves_taken_back_total", "Actors that set out and came back.", back),
            ("greenroom_optimiser_moves_withdrawn_total", "Actors that were to go and stayed.", stayed),
            ("greenroom_optimiser_exchanges_done_total", "Exchanges in which all went as agreed.", done),
            ("greenroom_optimiser_exchanges_fruitless_total", "Exchanges in which nothing was agreed.", fruitless),
            ("greenroom_optimiser_exchanges_failed_total", "Exchanges whose other side fell silent or left.", failed),
        ] {
            figures.count(name, help, count.load(Ordering::Relaxed));
        }
    }
}
