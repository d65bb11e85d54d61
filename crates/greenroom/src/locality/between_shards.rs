//! Moves between the shards of a node: the thin loop around the node's [`Gathering`], and what goes along.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use greenroom_protocols::flows::{Known, Level, Place, Standing};
use greenroom_protocols::gathering::{self, Gathering, MEASURED, Order, Survey, is_uneven};
use greenroom_world::Timestamp;

use super::moved::MovedActor;
use super::on_shard::OnShard;
use super::orders::tell_partners_on;
use super::tables::Tables;
use super::{Common, ask};
use crate::actor::key::{ActorId, Kind};
use crate::here::Here;
use crate::shard::{Item, Shard, ShardId};

/// What became of moves between shards.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) moved: AtomicU64,
}

/// What a shard knows of an actor that goes to another one.
struct Brought {
    known: Known,
    edges: Vec<(u64, f64)>,
    pinned_until: Option<Timestamp>,
}

/// Lets actors come to the shards of those that they talk with, until the node stops.
pub(super) async fn drive(here: Arc<Here>, common: Arc<Common>) {
    let world = here.world().clone();
    let mut gathering = Gathering::default();
    let mut measured: VecDeque<(Timestamp, Vec<u64>)> = VecDeque::new();
    while !here.is_stopped() {
        world.sleep_until(world.now() + EVERY).await;
        let now = world.now();
        let busy: Vec<u64> = here.gauges().iter().map(|gauges| gauges.busy_nanos()).collect();
        measured.push_back((now, busy));
        while measured.get(1).is_some_and(|(at, _)| now.since(*at) >= MEASURED) {
            measured.pop_front();
        }
        if common.exchanges.is_paused() || here.is_handing_over() || here.directory().is_none() {
            continue;
        }
        let (since, busy) = load(&measured);
        let all = is_uneven(&busy);
        let look =
            move |here: &Here, _: &Common, tables: &Tables, shard: &Shard| Some(tables.of_shard(here, shard, all));
        let actors: Vec<gathering::Actor> = ask(&here, look).await.into_iter().flatten().collect();
        if actors.is_empty() {
            continue;
        }
        for order in gathering.choose(now, &Survey { busy, since, actors }) {
            carry_out(&here, &order, now + UNTIL);
        }
    }
}

/// How busy each shard was since the first of the measurements, in µs a second, and when that was.
fn load(measured: &VecDeque<(Timestamp, Vec<u64>)>) -> (Timestamp, Vec<u64>) {
    let (Some((since, first)), Some((now, last))) = (measured.front(), measured.back()) else {
        return Default::default();
    };
    let passed = u64::try_from(now.since(*since).as_micros()).unwrap_or(u64::MAX).max(1);
    let micros = |(first, last): (&u64, &u64)| (last.saturating_sub(*first) / 1000).saturating_mul(1_000_000) / passed;
    (*since, first.iter().zip(last).map(micros).collect())
}

/// Lets an actor go to another shard, if it is still where it was.
fn carry_out(here: &Here, order: &Order, until: Timestamp) {
    let Some(hosted) = here.directory().and_then(|directory| directory.hosted(order.hash)) else { return };
    let port = |shard: u16| here.shards().get(usize::from(shard));
    let (Some(from), Some(to), Some(slot)) = (port(order.from), port(order.to), hosted.slot) else { return };
    if from.id == hosted.shard {
        let to = to.id;
        // A shard that has ended has nobody to give.
        let _ = from.push(Item::Run(Box::new(move |shard| shard.pass_freely(slot, to, until))));
    }
}

/// Whether actors of `kind` may go to other shards: all that are not told to stay.
pub(super) fn may_go(here: &Here, kind: Kind) -> bool {
    let configured = here.config().kinds.get(kind.name()).and_then(|kind| kind.optimise);
    let written = here.kinds().find(kind).map(|entry| entry.options().optimise);
    written.is_some_and(|written| configured.or(written) != Some(false))
}

impl Tables {
    /// The actors that may go to another shard, those that wish to alone unless `all` are asked for.
    fn of_shard(&self, here: &Here, shard: &Shard, all: bool) -> Vec<gathering::Actor> {
        let now = shard.now();
        let is_beside = |place: Place| place.level() == Some(Level::Shards);
        let wishing = self.wishes.iter().filter(|wish| is_beside(wish.to));
        let mut hot: BTreeMap<u64, bool> = wishing.map(|wish| (wish.actor, true)).collect();
        if all {
            self.flows.standings(now).for_each(|standing| _ = hot.entry(standing.actor).or_default());
        }
        let per_minute = |a_second: f64| (a_second * 60.0) as u32;
        let actor = |(hash, ready): (u64, bool)| {
            let Standing { known, .. } = self.flows.standing(hash, now)?;
            Kind::numbered(known.kind.0).filter(|kind| may_go(here, *kind))?;
            let toward = known.parts.into_iter().filter(|(place, _)| is_beside(*place));
            let edges = self.edges.partners(hash, now).into_iter().take(EDGES_MAX);
            Some(gathering::Actor {
                hash,
                shard: shard.index(),
                flow: per_minute(known.rate),
                near: per_minute(known.rate * f64::from(known.near)),
                toward: toward.map(|(to, part)| (to.number(), per_minute(known.rate * f64::from(part)))).collect(),
                ready,
                cpu: self.cpu_of(known.rate),
                edges: edges.map(|edge| (edge.partner, per_minute(edge.a_second()))).collect(),
            })
        };
        hot.into_iter().filter_map(actor).collect()
    }
}

/// An actor goes to the shard `to`: what is known of it.
pub(super) fn passes(shard: &Shard, tables: &mut Tables, id: &ActorId, to: ShardId) -> Option<Box<dyn Any + Send>> {
    let (hash, now) = (id.stable_hash(), shard.now());
    let known = tables.flows.standing(hash, now)?.known;
    let edges = tables.left(hash, Place::shard(shard.sibling(to)? as u16), now);
    let pinned_until = tables.pins.take(hash);
    Some(Box::new(Brought { known, edges, pinned_until }))
}

/// An actor has come from the shard `from`.
pub(super) fn entered(
    shard: &Shard,
    tables: &mut Tables,
    id: &ActorId,
    from: ShardId,
    brought: &dyn Any,
) -> Option<MovedActor> {
    let Brought { known, edges, pinned_until } = brought.downcast_ref()?;
    let (hash, now, world) = (id.stable_hash(), shard.now(), shard.port().node.world());
    let (old, new) = (Place::shard(shard.sibling(from)? as u16), Place::shard(shard.index()));
    if old == new {
        return None;
    }
    let moved = moved(shard, id, known, (old, new));
    let known = known.from_shard(old, new);
    tables.flows.arrived(hash, &known, old, now, world.random());
    if let Some(until) = pinned_until {
        tables.pins.pin(hash, *until, now);
    }
    for (partner, weight) in edges {
        tables.edges.add(hash, *partner, *weight, now, world.random());
    }
    let (came_from, here) = (old.number(), shard.index());
    let place = |of: u16, seen_by: u16| if of == seen_by { Place::NEAR } else { Place::shard(of) };
    tell_partners_on(shard, hash, edges, |index| (place(came_from, index), place(here, index)));
    Some(moved)
}

/// What people are told of an actor that has come from the shard `old` to this one, of which that one knew this.
fn moved(shard: &Shard, id: &ActorId, known: &Known, (old, new): (Place, Place)) -> MovedActor {
    let part = known.parts.iter().find(|(place, _)| *place == new).map_or(0.0, |(_, part)| *part);
    let gain = (known.rate * 60.0 * f64::from(part - known.near)) as i64;
    let why = match gain > 0 {
        true => "it talks with actors there",
        false => "its shard has more to do",
    };
    let node = shard.port().node.name().to_owned();
    MovedActor {
        number: 0,
        actor: id.to_string(),
        from: node.clone(),
        to: node,
        shards: Some([old.number(), new.number()]),
        at_s: 0.0,
        ago_s: 0.0,
        gain,
        cost: gathering::COST as u32,
        why,
    }
}

impl OnShard {
    pub(super) fn lets_go(&self, shard: &Shard, id: &ActorId, to: ShardId) -> Option<Box<dyn Any + Send>> {
        self.with_mut(|_, tables| passes(shard, tables, id, to)).flatten()
    }

    pub(super) fn lets_in(&self, shard: &Shard, id: &ActorId, from: ShardId, brought: &dyn Any) {
        self.with_mut(|common, tables| {
            if let Some(moved) = entered(shard, tables, id, from, brought) {
                common.between_shards.moved.fetch_add(1, Ordering::Relaxed);
                common.moved.note(&shard.port().node, moved, shard.now());
            }
        });
    }
}

/// How often it is chosen who goes.
const EVERY: Duration = Duration::from_secs(1);
/// Time in which an actor must have set out: a long turn keeps it where it is.
const UNTIL: Duration = Duration::from_secs(1);
/// Partners of an actor that are looked at.
const EDGES_MAX: usize = 32;
