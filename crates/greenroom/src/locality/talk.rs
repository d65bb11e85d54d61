//! Which kinds of a shard's actors ask which, by the messages that are sampled.

use std::collections::BTreeMap;

use greenroom_protocols::heavy_edges::decay::{Decay, a_second_within};
use greenroom_world::Timestamp;

use super::tables::Tables;
use crate::actor::key::Kind;
use crate::observe::stage::{Called, Talk};
use crate::shard::sampling::{Place, Sample};

/// How often actors of one kind ask something of those of another: calls and sends, with a half-life of 30 s.
pub(super) struct Pairs {
    /// By the kinds' numbers, those at the origin of `decay`: on one shard, on one node, between nodes, between clusters.
    sums: BTreeMap<(u16, u16), [f64; 4]>,
    decay: Decay,
    begun: Timestamp,
}

impl Pairs {
    pub(super) fn new(now: Timestamp) -> Self {
        Self { sums: BTreeMap::new(), decay: Decay::new(now), begun: now }
    }

    /// Counts a message of which so many were as this one, if an actor of this shard has sent it.
    pub(super) fn count(&mut self, stands_for: u32, sample: &Sample<'_>, now: Timestamp) {
        let distance = match sample.place {
            Place::Near => 0,
            Place::Shard(_) => 1,
            Place::Node(_) => 2,
            Place::Cluster(_) => 3,
            Place::Outside => return,
        };
        let Some(from) = sample.from else { return };
        if let Some(factor) = self.decay.renew(now) {
            self.sums.values_mut().flatten().for_each(|sum| *sum *= factor);
        }
        let pair = (from.kind.number(), sample.to.kind.number());
        if self.sums.len() < PAIRS_MAX || self.sums.contains_key(&pair) {
            self.sums.entry(pair).or_default()[distance] += f64::from(stands_for) * self.decay.factor(now);
        }
    }

    fn called(&self, now: Timestamp) -> Vec<Called> {
        let (factor, counted) = (self.decay.factor(now), now.since(self.begun));
        let name = |number| Kind::numbered(number).map(|kind: Kind| kind.name().to_owned());
        let called = self.sums.iter().filter_map(|((from, to), sums)| {
            let rates = sums.map(|sum| a_second_within(sum / factor, counted));
            Some(Called { from: name(*from)?, to: name(*to)?, rates })
        });
        called.collect()
    }
}

impl Tables {
    /// Who talks with whom: the heaviest edges, at most so many, and the kinds.
    pub(super) fn talk(&self, edges_max: usize, now: Timestamp) -> Talk {
        let heaviest = self.edges.heaviest(edges_max, now);
        Talk {
            edges_left_out: self.edges.len().saturating_sub(heaviest.len()),
            edges: heaviest.iter().map(|edge| (edge.actor, edge.partner, edge.a_second())).collect(),
            called: self.pairs.called(now),
        }
    }
}

/// Pairs of kinds that are told apart: as many as there are of thirty kinds that all talk with each other.
const PAIRS_MAX: usize = 1024;
