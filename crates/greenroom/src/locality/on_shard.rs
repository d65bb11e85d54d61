//! What a shard knows of whom its actors talk with.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use greenroom_protocols::flows::gap::Gap;
use greenroom_protocols::flows::{self, Flows, KindId, Place, Wish};
use greenroom_protocols::heavy_edges::HeavyEdges;
use greenroom_world::Timestamp;

use super::Common;
use crate::actor::key::ActorId;
use crate::here::Here;
use crate::pids::key::is_reserved;
use crate::shard::Shard;
use crate::shard::parts::ShardPart;
use crate::shard::sampling::{self, Sample};

/// A shard's part.
pub(super) struct OnShard {
    common: Arc<Common>,
    /// Made when it first looks: most of the memory is there.
    tables: RefCell<Option<Tables>>,
    look_at: Cell<Timestamp>,
}

/// What it counts into.
pub(super) struct Tables {
    near: Gap,
    far: Gap,
    pub(super) flows: Flows,
    pub(super) edges: HeavyEdges,
    names: Names,
    /// The wishes that were found when it last looked, of so many rows as it looks at in a second.
    pub(super) wishes: Vec<Wish>,
    /// Those that the look that goes on has found so far.
    found: Vec<Wish>,
    since: Timestamp,
    /// How many places that are no more it has forgotten.
    forgotten: usize,
}

/// The actors that were last met, for people: by their hashes, one of them at each place.
struct Names(Box<[Option<(u64, ActorId)>]>);

impl Names {
    fn note(&mut self, hash: u64, id: &ActorId) {
        let place = &mut self.0[hash as usize % NAMES_LEN];
        if place.as_ref().is_none_or(|(known, _)| *known != hash) {
            *place = Some((hash, id.clone()));
        }
    }

    fn find(&self, hash: u64) -> Option<&ActorId> {
        let (known, id) = self.0[hash as usize % NAMES_LEN].as_ref()?;
        (*known == hash).then_some(id)
    }
}

impl Tables {
    fn new(now: Timestamp) -> Self {
        Self {
            near: Gap::new(),
            far: Gap::new(),
            flows: Flows::new(flows::ROWS_MIN, now),
            edges: HeavyEdges::new(flows::ROWS_MIN, now),
            names: Names(vec![None; NAMES_LEN].into()),
            wishes: Vec::new(),
            found: Vec::new(),
            since: now,
            forgotten: 0,
        }
    }

    /// The name of an actor, if it is known.
    pub(super) fn name(&self, hash: u64) -> Option<&ActorId> {
        self.names.find(hash)
    }

    pub(super) fn near_stride(&self) -> u32 {
        self.near.stride()
    }

    pub(super) fn far_stride(&self) -> u32 {
        self.far.stride()
    }

    fn gap(&mut self, near: bool) -> &mut Gap {
        if near { &mut self.near } else { &mut self.far }
    }

    fn count(&mut self, near: bool, sample: &Sample<'_>, place: Place, shard: &Shard) -> u32 {
        let (world, now) = (shard.port().node.world(), shard.now());
        let weight = self.gap(near).sampled(world.random());
        let to = sample.to.stable_hash();
        self.names.note(to, sample.to);
        let mut end = |actor: u64, id: &ActorId| {
            let kind = KindId(id.kind.number());
            let one = flows::Sample { actor, kind, place, weight: weight as f32 };
            self.flows.sample(&one, now, world.random());
        };
        let from = sample.from.map(|from| (from.stable_hash(), from));
        if let Some((hash, from)) = from {
            end(hash, from);
        }
        // The other end is of this shard if the message has not left it, or has come to it.
        if place == Place::NEAR || from.is_none() {
            end(to, sample.to);
        }
        if let Some((hash, from)) = from {
            self.names.note(hash, from);
            self.edges.add(hash, to, f64::from(weight), now, world.random());
            if place == Place::NEAR {
                self.edges.add(to, hash, f64::from(weight), now, world.random());
            }
        }
        weight
    }
}

impl OnShard {
    pub(super) fn new(common: Arc<Common>) -> Self {
        Self { common, tables: RefCell::default(), look_at: Cell::default() }
    }

    /// What is known, if anything has been looked at.
    pub(super) fn with<T>(&self, read: impl FnOnce(&Common, &Tables) -> T) -> Option<T> {
        self.tables.borrow().as_ref().map(|tables| read(&self.common, tables))
    }

    fn place(&self, shard: &Shard, place: sampling::Place) -> Option<Place> {
        match place {
            sampling::Place::Near => Some(Place::NEAR),
            sampling::Place::Shard(id) => Some(Place::shard(shard.sibling(id)? as u16)),
            sampling::Place::Node(node) => self.common.places.of(node),
        }
    }
}

impl ShardPart for OnShard {
    fn look(&self, shard: &Shard, now: Timestamp) -> Option<Timestamp> {
        if now < self.look_at.get() {
            return Some(self.look_at.get());
        }
        let random = || shard.port().node.world().random();
        let mut tables = self.tables.borrow_mut();
        match &mut *tables {
            None => {
                *tables = Some(Tables::new(now));
                shard.begin_sampling();
            }
            Some(tables) => {
                let passed = now.since(tables.since);
                tables.since = now;
                for (near, gap) in [(true, &mut tables.near), (false, &mut tables.far)] {
                    let before = gap.left();
                    gap.second(passed, random());
                    if gap.left() < before {
                        shard.sample_after(near, gap.left());
                    }
                }
                let Tables { flows, found, wishes, forgotten, .. } = tables;
                for place in self.common.places.gone(*forgotten) {
                    flows.lost(place);
                    let stays = |wish: &Wish| wish.to != place;
                    wishes.retain(stays);
                    found.retain(stays);
                    *forgotten += 1;
                }
                if flows.look_on(ROWS_A_LOOK, now, found) {
                    std::mem::swap(found, wishes);
                    found.clear();
                }
            }
        }
        self.look_at.set(now + LOOK_EVERY);
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
        match counted {
            Some((place, sample)) => {
                let weight = tables.count(near, &sample, place, shard);
                self.common.counts.note(sample.place, u64::from(weight));
            }
            None => _ = tables.gap(near).sampled(node.world().random()),
        }
        Some(tables.gap(near).left())
    }
}

/// Whether an actor can be elsewhere: spawned ones and stateless workers are where they are, reliable ones where their partition is.
fn may_move(node: &Here, id: &ActorId) -> bool {
    let kinds = node.kinds();
    !is_reserved(&id.key) && kinds.workers(id.kind) == 0 && !kinds.is_reliable(id.kind)
}

/// How often strides are set and wishes looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Rows that are looked at each time.
const ROWS_A_LOOK: usize = 8 * 1024;
/// Actors whose names are kept for people.
const NAMES_LEN: usize = 4096;
