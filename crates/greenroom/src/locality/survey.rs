//! What a node tells its exchange of itself: who is hot here, where each may go, and how loaded all nodes are.

use std::collections::{BTreeMap, BTreeSet};

use greenroom_protocols::exchange::{self, EDGES_MAX, Measured, Roster, Survey};
use greenroom_protocols::flows::{Level, Place, Standing};
use greenroom_protocols::node::NodeId;

use super::Common;
use super::anchors::destinations;
use super::tables::Tables;
use crate::actor::key::Kind;
use crate::here::Here;
use crate::shard::Shard;

/// A survey that was taken, and the directory.
pub(super) struct Taken<'a> {
    pub(super) here: &'a Here,
    pub(super) survey: &'a Survey,
}

impl Roster for Taken<'_> {
    fn survey(&self) -> Survey {
        self.survey.clone()
    }

    fn hosts(&self, hash: u64) -> bool {
        self.here.directory().is_some_and(|directory| directory.hosted(hash).is_some())
    }
}

/// The hot actors of one shard, and what it has to do.
pub(super) struct OfShard {
    pub(super) actors: Vec<exchange::Actor>,
    pub(super) barred: BTreeSet<(u32, NodeId)>,
}

impl Tables {
    /// The actors that may move, those that wish to alone unless `all` are asked for.
    pub(super) fn survey(&self, here: &Here, common: &Common, shard: &Shard, all: bool) -> OfShard {
        let now = shard.now();
        let ready: BTreeSet<u64> = self.wishes.iter().filter(|wish| is_far(wish.to)).map(|wish| wish.actor).collect();
        let mut of = OfShard { actors: Vec::new(), barred: BTreeSet::new() };
        let mut kinds: BTreeMap<u16, Option<BTreeSet<NodeId>>> = BTreeMap::new();
        let Some(directory) = here.directory() else { return of };
        let others: Vec<NodeId> = here.view().view.active().map(|(node, _)| node).collect();
        let free = |actor: u64| (all || ready.contains(&actor)) && !self.pins.holds(actor, now);
        for standing in self.flows.standings(now).filter(|standing| free(standing.actor)) {
            let Standing { actor, known, .. } = standing;
            let number = known.kind.0;
            let may = kinds.entry(number).or_insert_with(|| {
                let may = destinations(here, Kind::numbered(number)?).ok()?;
                let barred = others.iter().filter(|node| !may.contains(node));
                of.barred.extend(barred.map(|node| (u32::from(number), *node)));
                Some(may)
            });
            let hosted = directory.hosted(actor).filter(|hosted| hosted.shard == shard.id() && hosted.slot.is_some());
            let Some(hosted) = hosted.filter(|_| may.is_some()) else { continue };
            let per_minute = |part: f64| (part * 60.0) as u32;
            let toward = known.parts.into_iter().filter(|(place, _)| is_far(*place)).filter_map(|(place, part)| {
                Some((common.places.node(place)?, per_minute(known.rate * f64::from(part))))
            });
            let is_ready = ready.contains(&actor);
            let partners = if is_ready { self.edges.partners(actor, now) } else { Vec::new() };
            let edges = partners.into_iter().filter_map(|edge| {
                let at = match self.where_is(edge.partner)? {
                    place if is_far(place) => common.places.node(place)?,
                    _ => here.me(),
                };
                Some(exchange::Edge { partner: edge.partner, at, flow: per_minute(edge.a_second()) })
            });
            of.actors.push(exchange::Actor {
                hash: actor,
                epoch: hosted.epoch,
                kind: u32::from(number),
                flow: per_minute(known.rate),
                here: per_minute(known.rate * f64::from(known.near + known.beside)),
                toward: toward.collect(),
                ready: is_ready,
                cost: known.cost.0 as u32,
                cpu: self.cpu_of(known.rate),
                bytes: 0,
                edges: edges.take(EDGES_MAX).collect(),
            });
        }
        of
    }
}

/// Whether a place is another node.
pub(super) fn is_far(place: Place) -> bool {
    place.level() == Some(Level::Nodes)
}

/// What all shards of a node say together.
pub(super) fn joined(shards: Vec<OfShard>, load: Measured, others: BTreeMap<NodeId, Measured>) -> Survey {
    let mut survey = Survey { load, others, ..Survey::default() };
    for OfShard { actors, barred } in shards {
        survey.actors.extend(actors);
        survey.barred.extend(barred);
    }
    survey
}
