//! What a shard knows of whom its actors talk with.

use std::any::Any;
use std::cell::{Cell, RefCell, RefMut};
use std::sync::Arc;
use std::time::Duration;

use greenroom_protocols::flows::Place;
use greenroom_protocols::node::NodeId;
use greenroom_world::Timestamp;

use super::arrivals;
use super::exchanges::Happening;
use super::settings::OptimiserMode;
use super::tables::Tables;
use super::word::Letter;
use super::{Common, leavers, orders};
use crate::actor::key::ActorId;
use crate::here::Here;
use crate::observe::stage::Talk;
use crate::pids::key::is_reserved;
use crate::shard::parts::{Arrival, ShardPart};
use crate::shard::sampling::{self, Sample};
use crate::shard::{Shard, ShardId};

/// A shard's part.
pub(super) struct OnShard {
    common: Arc<Common>,
    /// Made when it first looks: most of the memory is there.
    tables: RefCell<Option<Tables>>,
    look_at: Cell<Timestamp>,
}

impl OnShard {
    pub(super) fn new(common: Arc<Common>) -> Self {
        Self { common, tables: RefCell::default(), look_at: Cell::default() }
    }

    /// What is known, if anything has been looked at.
    pub(super) fn with<T>(&self, read: impl FnOnce(&Common, &Tables) -> T) -> Option<T> {
        self.tables.borrow().as_ref().map(|tables| read(&self.common, tables))
    }

    /// The same, to change it.
    pub(super) fn with_mut<T>(&self, change: impl FnOnce(&Common, &mut Tables) -> T) -> Option<T> {
        self.tables.borrow_mut().as_mut().map(|tables| change(&self.common, tables))
    }

    /// What is known; from now on there is something.
    fn tables(&self, shard: &Shard) -> RefMut<'_, Tables> {
        RefMut::map(self.tables.borrow_mut(), |tables| {
            tables.get_or_insert_with(|| {
                shard.begin_sampling();
                Tables::new(shard.now())
            })
        })
    }

    /// Remembers whence an actor has come, and why.
    fn note_arrival(&self, shard: &Shard, id: &ActorId, from: NodeId, letter: Option<&Letter>) {
        let node = &shard.port().node;
        let why = arrivals::why(letter, node.me());
        let from = node.member(from).map_or_else(|| from.to_string(), |member| member.name);
        self.common.arrivals.note(id.stable_hash(), Arrival { from, at: shard.now(), why });
    }

    fn place(&self, shard: &Shard, place: sampling::Place) -> Option<Place> {
        match place {
            sampling::Place::Near => Some(Place::NEAR),
            sampling::Place::Shard(id) => Some(Place::shard(shard.sibling(id)? as u16)),
            sampling::Place::Node(node) => self.common.places.of(node),
            sampling::Place::Outside => Some(Place::OUTSIDE),
            sampling::Place::Cluster(_) => None,
        }
    }
}

impl ShardPart for OnShard {
    fn look(&self, shard: &Shard, now: Timestamp) -> Option<Timestamp> {
        if now < self.look_at.get() {
            return Some(self.look_at.get());
        }
        self.look_at.set(now + LOOK_EVERY);
        let is_new = self.tables.borrow().is_none();
        // Where actors have nowhere to go nothing is sampled, unless people want to know.
        if !is_new || self.common.mode == OptimiserMode::Advise || has_elsewhere(&shard.port().node) {
            let mut tables = self.tables(shard);
            if !is_new {
                tables.look(shard, &self.common, now);
            }
        }
        Some(self.look_at.get())
    }

    fn sampled(&self, shard: &Shard, near: bool, sample: Option<&Sample<'_>>) -> Option<u32> {
        let mut tables = self.tables.borrow_mut();
        let tables = tables.as_mut()?;
        let node = &shard.port().node;
        let counted = sample.and_then(|sample| {
            let from = sample.from.filter(|from| may_move(node, from));
            // What goes elsewhere is of its sender alone.
            let of_somebody = sample.place == sampling::Place::Near || sample.from.is_some() == from.is_some();
            let place = self.place(shard, sample.place).filter(|_| of_somebody && may_move(node, sample.to))?;
            Some((place, Sample { from, ..*sample }))
        });
        tables.gap(near).due();
        let stands_for = tables.gap(near).sampled(node.world().random());
        if let Some(sample) = sample {
            tables.pairs.count(stands_for, sample, shard.now());
        }
        let weight = stands_for * sample.map_or(1, Sample::messages);
        if let Some((place, sample)) = counted {
            tables.count(weight, &sample, place, shard);
            self.common.counts.note(sample.place, u64::from(weight));
        } else if let Some(sample) = sample.filter(|sample| sample.place.is_beyond()) {
            tables.called(weight, sample, node);
            self.common.counts.note(sample.place, u64::from(weight));
        }
        Some(tables.gap(near).left())
    }

    fn passes(&self, shard: &Shard, id: &ActorId, to: ShardId) -> Option<Box<dyn Any + Send>> {
        self.lets_go(shard, id, to)
    }

    fn entered(&self, shard: &Shard, id: &ActorId, from: ShardId, brought: &dyn Any) {
        self.lets_in(shard, id, from, brought);
    }

    fn admits(&self, shard: &Shard, id: &ActorId, from: NodeId, letter: &[u8]) -> Result<(), String> {
        // Who is sent by nobody's exchange comes by an order of somebody.
        let Ok(letter) = Letter::decode(letter) else { return Ok(()) };
        let admits = self.common.exchanges.admits(&shard.port().node, from, id.stable_hash(), &letter);
        admits.then_some(()).ok_or_else(|| "there is no room for it any more".to_owned())
    }

    fn arrived(&self, shard: &Shard, id: &ActorId, from: NodeId, letter: &[u8]) {
        let letter = Letter::decode(letter).ok();
        self.note_arrival(shard, id, from, letter.as_ref());
        let (Some(letter), Some(place)) = (letter, self.common.places.of(from)) else { return };
        self.with_mut(|common, tables| tables.came(id, place, &letter, shard, common));
        orders::came(shard, id, place, &letter);
        let Letter { x, edges: partners, .. } = letter;
        self.common.exchanges.happens(Happening::Arrived { x, hash: id.stable_hash(), from, partners });
    }

    fn carried(&self, _: &Shard, id: &ActorId, bytes: usize) {
        self.with_mut(|_, tables| tables.carried(id, bytes));
    }

    fn woke(&self, _: &Shard, id: &ActorId, took: Duration) {
        self.with_mut(|_, tables| tables.woke(id, took));
    }

    fn pinned(&self, shard: &Shard, id: &ActorId, until: Timestamp) {
        self.tables(shard).pins.pin(id.stable_hash(), until, shard.now());
    }

    fn whither(&self, shard: &Shard, id: &ActorId, among: &[NodeId]) -> Option<NodeId> {
        self.with(|common, tables| leavers::whither(shard, common, tables, id, among)).flatten()
    }

    fn talk(&self, shard: &Shard, edges_max: usize) -> Option<Talk> {
        self.with(|_, tables| tables.talk(edges_max, shard.now()))
    }

    fn brought(&self, id: &ActorId) -> Option<Arrival> {
        self.common.arrivals.last(id.stable_hash())
    }
}

/// Whether an actor can be elsewhere: spawned ones and stateless workers are where they are, reliable ones where their partition is.
fn may_move(node: &Here, id: &ActorId) -> bool {
    let kinds = node.kinds();
    !is_reserved(&id.key) && kinds.workers(id.kind) == 0 && !kinds.is_reliable(id.kind)
}

/// Whether an actor of this shard could be on another one, on another node, or in another cluster.
fn has_elsewhere(node: &Here) -> bool {
    node.shards().len() > 1 || node.view().view.active().count() > 1 || node.config().geo.is_some()
}

/// How often strides are set and wishes looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);
