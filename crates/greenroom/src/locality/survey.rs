//! What a node tells its exchange of itself: who is hot here, where each may go, and how loaded all nodes are.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use greenroom_protocols::exchange::{self, EDGES_MAX, Measured, Roster, Survey};
use greenroom_protocols::flows::sets::{self, Member};
use greenroom_protocols::flows::{Cost, KindId, Level, Place, Standing};
use greenroom_protocols::heavy_edges;
use greenroom_protocols::node::NodeId;

use super::Common;
use super::anchors::destinations;
use super::tables::Tables;
use crate::actor::key::Kind;
use crate::here::Here;
use crate::shard::{Shard, ShardId};

/// A survey that was taken, and the directory.
pub(super) struct Taken<'a> {
    pub(super) here: &'a Here,
    pub(super) survey: &'a Survey,
}

impl Roster for Taken<'_> {
    fn survey(&self) -> Cow<'_, Survey> {
        Cow::Borrowed(self.survey)
    }

    fn hosts(&self, hash: u64) -> bool {
        self.here.directory().is_some_and(|directory| directory.hosted(hash).is_some())
    }
}

/// What a shard has counted of its hot actors.
pub(super) struct OfShard {
    shard: ShardId,
    /// They, and whether their wishes count.
    rows: Vec<(Standing, bool)>,
    /// Whom they talk with, and where those were last found.
    edges: Vec<(heavy_edges::Edge, Option<Place>)>,
    micros_a_message: f64,
    /// What the actors of each kind carry.
    loads: BTreeMap<KindId, f64>,
}

impl Tables {
    /// A copy for the survey: a shard does no more for it.
    pub(super) fn copied(&self, shard: &Shard) -> OfShard {
        let now = shard.now();
        let ready: BTreeSet<u64> = self.wishes.iter().filter(|wish| is_far(wish.to)).map(|wish| wish.actor).collect();
        let free = self.flows.standings(now).filter(|standing| !self.pins.holds(standing.actor, now));
        // At once as long as they are: they are large, and copies on the way would be as large.
        let mut rows = Vec::with_capacity(self.flows.standings(now).count());
        rows.extend(free.map(|standing| (standing, ready.contains(&standing.actor))));
        let mut edges = Vec::with_capacity(self.edges.all(now).count());
        edges.extend(self.edges.all(now).map(|edge| (edge, self.where_is(edge.partner))));
        OfShard { shard: shard.id(), rows, edges, micros_a_message: self.micros_a_message(), loads: self.loads.clone() }
    }
}

/// What a survey is made of, beside what the shards have counted.
pub(super) struct Surveyor<'a> {
    pub(super) here: &'a Here,
    pub(super) common: &'a Common,
    /// Whether balance may want any of the actors.
    pub(super) for_balance: bool,
}

impl Surveyor<'_> {
    /// The actors that wish to move, alone or as sets; all that may move, and all sets, if balance may want them.
    pub(super) fn survey(&self, shards: &[OfShard], load: Measured, others: BTreeMap<NodeId, Measured>) -> Survey {
        let mut survey = Survey { load, others, ..Survey::default() };
        let kinds = self.kinds(shards, &mut survey.barred);
        let may_move = |standing: &Standing| kinds.contains(&standing.known.kind);
        let rows = || shards.iter().flat_map(|of| &of.rows).filter(|(standing, _)| may_move(standing));
        let members = rows().map(|(standing, _)| Member::of(standing, Level::Nodes)).collect();
        let edges: Vec<heavy_edges::Edge> = shards.iter().flat_map(|of| &of.edges).map(|(edge, _)| *edge).collect();
        let sets = sets::sets(members, &edges).into_iter().map(|set| {
            let ready = !set.wishes.is_empty();
            exchange::Set { members: set.members, ready }
        });
        survey.sets = sets.filter(|set| set.ready || self.for_balance).collect();
        let together: BTreeSet<u64> = survey.sets.iter().flat_map(|set| &set.members).copied().collect();
        for of in shards {
            let edges = self.edges_by_actor(of);
            let goes = |(standing, ready): &&(Standing, bool)| {
                (*ready || self.for_balance || together.contains(&standing.actor)) && may_move(standing)
            };
            survey.actors.extend(of.rows.iter().filter(goes).filter_map(|row| self.actor(of, row, &edges)));
        }
        // Who has ended has a row still.
        let here: BTreeSet<u64> = survey.actors.iter().map(|actor| actor.hash).collect();
        survey.sets.iter_mut().for_each(|set| set.members.retain(|member| here.contains(member)));
        survey.sets.retain(|set| set.members.len() > 1);
        survey
    }

    /// The kinds whose actors may move, and where they may not be.
    fn kinds(&self, shards: &[OfShard], barred: &mut BTreeSet<(u32, NodeId)>) -> BTreeSet<KindId> {
        let view = self.here.view();
        let all: BTreeSet<KindId> =
            shards.iter().flat_map(|of| &of.rows).map(|(standing, _)| standing.known.kind).collect();
        let moving = all.into_iter().filter(|kind| {
            let may = Kind::numbered(kind.0).and_then(|known| destinations(self.here, known).ok());
            let Some(may) = may else { return false };
            let other = view.view.active().map(|(node, _)| node).filter(|node| !may.contains(node));
            barred.extend(other.map(|node| (u32::from(kind.0), node)));
            true
        });
        moving.collect()
    }

    /// The edges of a shard's actors, by actor and the heaviest first.
    fn edges_by_actor(&self, of: &OfShard) -> Vec<(u64, exchange::Edge)> {
        let edges = of.edges.iter().filter_map(|(edge, place)| {
            let at = match (*place)? {
                place if is_far(place) => self.common.places.node(place)?,
                _ => self.here.me(),
            };
            Some((edge.actor, exchange::Edge { partner: edge.partner, at, flow: a_minute(edge.a_second()) }))
        });
        let mut edges: Vec<(u64, exchange::Edge)> = edges.collect();
        edges.sort_unstable_by_key(|(actor, edge)| (*actor, Reverse(edge.flow), edge.partner));
        edges
    }

    fn actor(
        &self,
        of: &OfShard,
        (standing, ready): &(Standing, bool),
        edges: &[(u64, exchange::Edge)],
    ) -> Option<exchange::Actor> {
        let Standing { actor, known, .. } = standing;
        let hosted = self.here.directory()?.hosted(*actor)?;
        if hosted.shard != of.shard || hosted.slot.is_none() || is_too_large(known.cost) {
            return None;
        }
        let toward = known.parts.into_iter().filter(|(place, _)| is_far(*place)).filter_map(|(place, part)| {
            Some((self.common.places.node(place)?, a_minute(known.rate * f64::from(part))))
        });
        let first = edges.partition_point(|(of, _)| of < actor);
        let own = edges[first..].iter().take_while(|(of, _)| of == actor);
        Some(exchange::Actor {
            hash: *actor,
            epoch: hosted.epoch,
            kind: u32::from(known.kind.0),
            flow: a_minute(known.rate),
            here: a_minute(known.rate * f64::from(known.here())),
            toward: toward.collect(),
            ready: *ready,
            cost: known.price().0 as u32,
            cpu: (known.rate * of.micros_a_message) as u32,
            bytes: of.loads.get(&known.kind).map_or(0, |bytes| *bytes as u32),
            edges: own.map(|(_, edge)| *edge).take(EDGES_MAX).collect(),
        })
    }
}

/// Whether an actor carries too much to be moved because of its messages, by what that costs.
pub(super) fn is_too_large(cost: Cost) -> bool {
    cost > Cost::of(CARRIED_MAX)
}

/// Messages a minute, of those a second.
fn a_minute(a_second: f64) -> u32 {
    (a_second * 60.0) as u32
}

/// Whether a place is another node.
pub(super) fn is_far(place: Place) -> bool {
    place.level() == Some(Level::Nodes)
}

/// Bytes that an actor carries at most which the optimiser moves.
const CARRIED_MAX: u64 = 4 << 20;
