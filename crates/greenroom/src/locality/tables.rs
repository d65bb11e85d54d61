//! What a shard counts its samples into: rows, edges, and what people want to know of them.

use std::collections::BTreeMap;
use std::time::Duration;

use greenroom_protocols::callers::Callers;
use greenroom_protocols::exchange::ExchangeId;
use greenroom_protocols::flows::budget::Budget;
use greenroom_protocols::flows::gap::Gap;
use greenroom_protocols::flows::{self, Cost, Flows, Judged, KindId, Place, Standing, Wish};
use greenroom_protocols::heavy_edges::{self, Edge, HeavyEdges};
use greenroom_world::Timestamp;

use super::Common;
use super::anchors::Pins;
use super::talk::Pairs;
use super::word::Letter;
use crate::actor::key::ActorId;
use crate::here::Here;
use crate::shard::Shard;
use crate::shard::sampling::{self, Sample};

/// What it counts into.
pub(super) struct Tables {
    near: Gap,
    far: Gap,
    budget: Budget,
    /// The version of the view under which it last looked.
    view: u64,
    pub(super) flows: Flows,
    pub(super) edges: HeavyEdges,
    pub(super) pairs: Pairs,
    names: Names,
    whereabouts: Whereabouts,
    pub(super) pins: Pins,
    pub(super) callers: Callers,
    /// How much the actors of each kind carry from node to node, in the mean of the last ones.
    pub(super) loads: BTreeMap<KindId, f64>,
    /// Seconds that activations of each kind take, in the mean of the last ones.
    wakes: BTreeMap<KindId, f64>,
    /// The wishes that were found when it last looked, of so many rows as it looks at in a second.
    pub(super) wishes: Vec<Wish>,
    /// Those that the look that goes on has found so far.
    found: Vec<Wish>,
    since: Timestamp,
    /// How many places that are no more it has forgotten.
    forgotten: usize,
    /// The shard's busy time so far, in ns.
    busy: u64,
    /// What a message of a hot actor takes, turns and all: µs of CPU.
    micros_a_message: f64,
    /// Rows that are in use.
    hot: usize,
    /// How moves were judged when it last looked.
    judged: Judged,
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

/// Where the actors that were last sent to were found, by their hashes, one of them at each place; as many as there are rows.
struct Whereabouts(Box<[(u64, Place)]>);

impl Whereabouts {
    fn new(len: usize) -> Self {
        Self(vec![(0, Place::NEAR); len].into())
    }

    fn note(&mut self, hash: u64, place: Place) {
        let len = self.0.len();
        self.0[hash as usize % len] = (hash, place);
    }

    fn find(&self, hash: u64) -> Option<Place> {
        let (known, place) = self.0[hash as usize % self.0.len()];
        (known == hash).then_some(place)
    }

    fn grow(&mut self, len: usize) {
        let old = std::mem::replace(self, Self::new(len));
        let known = old.0.into_iter().filter(|(hash, _)| *hash != 0);
        known.for_each(|(hash, place)| self.note(hash, place));
    }
}

impl Tables {
    pub(super) fn new(now: Timestamp) -> Self {
        Self {
            near: Gap::new(),
            far: Gap::new(),
            budget: Budget::default(),
            view: 0,
            flows: Flows::new(flows::ROWS_MIN, now),
            edges: HeavyEdges::new(flows::ROWS_MIN, now),
            pairs: Pairs::new(now),
            names: Names(vec![None; NAMES_LEN].into()),
            whereabouts: Whereabouts::new(flows::ROWS_MIN),
            pins: Pins::default(),
            callers: Callers::default(),
            loads: BTreeMap::new(),
            wakes: BTreeMap::new(),
            wishes: Vec::new(),
            found: Vec::new(),
            since: now,
            forgotten: 0,
            busy: 0,
            micros_a_message: 0.0,
            hot: 0,
            judged: Judged::default(),
        }
    }

    /// Where an actor was last found.
    pub(super) fn where_is(&self, actor: u64) -> Option<Place> {
        self.whereabouts.find(actor)
    }

    /// What a message of a hot actor takes: µs of CPU.
    pub(super) fn micros_a_message(&self) -> f64 {
        self.micros_a_message
    }

    /// What an actor with so many messages a second takes: µs of CPU a second.
    pub(super) fn cpu_of(&self, rate: f64) -> u32 {
        (rate * self.micros_a_message) as u32
    }

    /// What is due each second: makes room, sets the strides, and looks for wishes.
    pub(super) fn look(&mut self, shard: &Shard, common: &Common, now: Timestamp) {
        self.make_room(shard.gauges().activations() as usize);
        let node = &shard.port().node;
        let random = || node.world().random();
        let passed = now.since(self.since);
        self.since = now;
        let view = node.view().view.version;
        if std::mem::replace(&mut self.view, view) != view {
            // Between shards actors may move at once.
            self.budget.renew(node.shards().len() == 1);
        }
        let messages = self.near.messages().max(self.far.messages());
        let budget = self.budget.second(self.flows.take_savings(), messages);
        for (near, gap) in [(true, &mut self.near), (false, &mut self.far)] {
            let before = gap.left();
            gap.second(passed, budget, random());
            if gap.left() < before {
                shard.sample_after(near, gap.left());
            }
        }
        self.pins.look(now);
        self.flows.set_grain(CALL * self.near.stride().max(self.far.stride()));
        let Self { flows, found, wishes, forgotten, .. } = self;
        for place in common.places.gone(*forgotten) {
            flows.lost(place);
            let stays = |wish: &Wish| wish.to != place;
            wishes.retain(stays);
            found.retain(stays);
            *forgotten += 1;
        }
        if flows.look_on(ROWS_A_LOOK.max(flows.capacity() / LOOKS_MAX), now, found) {
            std::mem::swap(found, wishes);
            found.clear();
        }
        let judged = self.flows.judged();
        let before = std::mem::replace(&mut self.judged, judged);
        common.counts.judged(judged.good - before.good, judged.bad - before.bad);
        self.measure(shard.gauges().busy_nanos(), passed, now);
    }

    /// A row for each activation, and an edge for each end of one message in two of them, as far as tables may grow and once as many actors are hot
    /// as fill half of the rows: idle ones cost nothing.
    fn make_room(&mut self, activations: usize) {
        if 2 * self.hot < self.flows.capacity() {
            return;
        }
        if self.flows.capacity() < activations.min(flows::ROWS_MAX) {
            self.flows.grow();
            self.whereabouts.grow(self.flows.capacity());
        }
        if self.edges.capacity() < (2 * activations).min(heavy_edges::CAPACITY_MAX) {
            self.edges.grow();
        }
    }

    /// Shares what the shard had to do among the messages of its hot actors.
    fn measure(&mut self, busy: u64, passed: Duration, now: Timestamp) {
        let nanos = busy.saturating_sub(std::mem::replace(&mut self.busy, busy)) as f64;
        let (mut rates, mut hot) = (0.0, 0);
        for Standing { known, .. } in self.flows.standings(now) {
            (rates, hot) = (rates + known.rate, hot + 1);
        }
        self.hot = hot;
        self.micros_a_message = nanos / 1e3 / passed.as_secs_f64().max(1e-3) / f64::max(rates, 1.0);
    }

    /// What an actor of this shard is told to take along, if anything is known of it.
    pub(super) fn letter(&self, x: ExchangeId, actor: u64, common: &Common, now: Timestamp) -> Option<Letter> {
        let known = self.flows.standing(actor, now)?.known;
        let letter = Letter::new(x, &known, self.cpu_of(known.rate), |place| common.places.node(place));
        let edges = self.edges.partners(actor, now).into_iter();
        Some(letter.with_edges(edges.map(|edge| (edge.partner, edge.weight))))
    }

    /// An actor carries so much from node to node: what its moves cost from now on, and in the mean those of its kind.
    pub(super) fn carried(&mut self, id: &ActorId, bytes: usize) {
        let (kind, bytes) = (KindId(id.kind.number()), bytes as u64);
        let mean = self.loads.entry(kind).or_insert(bytes as f64);
        *mean += (bytes as f64 - *mean) * LEARNT;
        self.flows.set_cost(kind, Cost::of(*mean as u64));
        self.flows.costs(id.stable_hash(), Cost::of(bytes));
    }

    /// The activation of an actor has taken so long: in the mean, what the moves of its kind cost beside.
    pub(super) fn woke(&mut self, id: &ActorId, took: Duration) {
        let kind = KindId(id.kind.number());
        let mean = self.wakes.entry(kind).or_insert(took.as_secs_f64());
        *mean += (took.as_secs_f64() - *mean) * LEARNT;
        self.flows.set_loading(kind, Duration::from_secs_f64(*mean));
    }

    /// An actor has left for the node at `to`: whom it talks with most.
    pub(super) fn left(&mut self, actor: u64, to: Place, now: Timestamp) -> Vec<(u64, f64)> {
        let partners = self.edges.partners(actor, now);
        self.flows.moved(actor, now);
        self.edges.forget(actor);
        self.callers.forget(actor);
        self.whereabouts.note(actor, to);
        partners.into_iter().map(|edge| (edge.partner, edge.weight)).collect()
    }

    /// An actor has come from the node at `from`.
    pub(super) fn came(&mut self, id: &ActorId, from: Place, letter: &Letter, shard: &Shard, common: &Common) {
        let (node, now, hash) = (&shard.port().node, shard.now(), id.stable_hash());
        if letter.is_blank() {
            return;
        }
        let place_of = |other| if other == node.me() { Some(Place::NEAR) } else { common.places.of(other) };
        let known = letter.known(KindId(id.kind.number()), from, place_of);
        self.flows.arrived(hash, &known, from, now, node.world().random());
        self.names.note(hash, id);
        self.whereabouts.note(hash, Place::NEAR);
        for (partner, weight) in letter.edges.iter().filter(|(_, weight)| *weight > 0.0 && weight.is_finite()) {
            self.edges.add(hash, *partner, *weight, now, node.world().random());
        }
    }

    /// `actor`, with which some of this shard's actors talk, has gone from one place to another: what they sent there goes here now.
    pub(super) fn partner_moved(
        &mut self,
        actor: u64,
        partners: &[(u64, f64)],
        from: Place,
        to: Place,
        now: Timestamp,
    ) {
        for (partner, weight) in partners {
            let Some(Standing { known, .. }) = self.flows.standing(*partner, now) else { continue };
            let sent = self.edges.weight(*partner, actor, now).max(*weight);
            let share = Edge { weight: sent, ..Edge::default() }.a_second() / known.rate.max(f64::MIN_POSITIVE);
            self.flows.carry_over(*partner, share.clamp(0.0, 1.0) as f32, from, to);
        }
        if self.whereabouts.find(actor).is_some() {
            self.whereabouts.note(actor, to);
        }
    }

    /// What is known of an actor's messages with the node at `toward` is wrong.
    pub(super) fn clear(&mut self, actor: u64, toward: Place) {
        self.flows.clear(actor, toward);
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

    pub(super) fn gap(&mut self, near: bool) -> &mut Gap {
        if near { &mut self.near } else { &mut self.far }
    }

    /// Counts a message of an actor that has no place to go to in this cluster: it may be a call from another one.
    pub(super) fn called(&mut self, weight: u32, sample: &Sample<'_>, node: &Here) {
        let from = match sample.place {
            sampling::Place::Cluster(cluster) => Some(cluster),
            _ => None,
        };
        self.callers.sample(sample.to.stable_hash(), from, weight as f32, node.world().random());
    }

    /// Counts a message of which so many were as this one.
    pub(super) fn count(&mut self, weight: u32, sample: &Sample<'_>, place: Place, shard: &Shard) {
        let (world, now) = (shard.port().node.world(), shard.now());
        let to = sample.to.stable_hash();
        self.names.note(to, sample.to);
        let mut end = |actor: u64, id: &ActorId| {
            let kind = KindId(id.kind.number());
            self.callers.sample(actor, None, weight as f32, world.random());
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
            self.whereabouts.note(to, place);
            self.edges.add(hash, to, f64::from(weight), now, world.random());
            if place == Place::NEAR {
                self.edges.add(to, hash, f64::from(weight), now, world.random());
            }
        }
    }
}

/// Messages that a call is.
const CALL: u32 = 2;
/// Rows at least that are looked at each time.
const ROWS_A_LOOK: usize = 8 * 1024;
/// Looks after which all have been, however many there are.
const LOOKS_MAX: usize = 8;
/// How far a kind's mean goes toward what one of its actors carries.
const LEARNT: f64 = 0.125;
/// Actors whose names are kept for people.
const NAMES_LEN: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::key::Kind;
    use crate::locality::survey::is_too_large;

    #[test]
    fn what_an_actor_carries_is_in_the_price_of_its_moves_and_too_much_keeps_it() {
        let now = Timestamp::default();
        let mut tables = Tables::new(now);
        let kind = Kind::intern("tables_test_kind");
        let id = |key: &str| ActorId::unchecked(kind, key);
        let cost = |tables: &mut Tables, id: &ActorId| {
            let one =
                flows::Sample { actor: id.stable_hash(), kind: KindId(kind.number()), place: Place::NEAR, weight: 1.0 };
            tables.flows.sample(&one, now, 7);
            tables.flows.standing(id.stable_hash(), now).expect("it was sampled").known.cost
        };
        let (small, large) = (id("small"), id("large"));
        assert_eq!(cost(&mut tables, &small), Cost::default());
        tables.carried(&small, 8 << 10);
        assert_eq!(cost(&mut tables, &small), Cost(18.0));
        assert_eq!(cost(&mut tables, &large), Cost(18.0), "as far as is known of its kind");
        tables.carried(&large, 5 << 20);
        assert!(is_too_large(cost(&mut tables, &large)) && !is_too_large(cost(&mut tables, &small)));
        assert_eq!(tables.loads[&KindId(kind.number())], 7.0 / 8.0 * 8192.0 + f64::from(5 << 20) / 8.0);
    }

    #[test]
    fn how_long_an_activation_takes_is_in_the_price_of_moves_and_keeps_nobody() {
        let now = Timestamp::default();
        let mut tables = Tables::new(now);
        let kind = Kind::intern("tables_test_kept");
        let id = ActorId::unchecked(kind, "ada");
        tables.woke(&id, Duration::from_millis(9));
        let one =
            flows::Sample { actor: id.stable_hash(), kind: KindId(kind.number()), place: Place::NEAR, weight: 1.0 };
        tables.flows.sample(&one, now, 7);
        let known = |tables: &Tables| tables.flows.standing(id.stable_hash(), now).expect("it was sampled").known;
        assert_eq!(known(&tables).price(), Cost(16.0 + 10_000.0));
        assert!(known(&tables).memory > 1000.0 && !is_too_large(known(&tables).cost));
        (0..100).for_each(|_| tables.woke(&id, Duration::ZERO));
        assert!(known(&tables).price() < Cost(17.0), "{:?}", known(&tables).price());
    }

    #[test]
    fn idle_actors_make_no_table_grow() {
        let mut tables = Tables::new(Timestamp::default());
        let (rows, edges) = (tables.flows.capacity(), tables.edges.capacity());
        tables.make_room(1 << 20);
        assert_eq!((tables.flows.capacity(), tables.edges.capacity()), (rows, edges));
        tables.hot = rows / 2;
        tables.make_room(1 << 20);
        assert_eq!((tables.flows.capacity(), tables.edges.capacity()), (2 * rows, 2 * edges));
    }
}
