//! What one node would send to another one: actors that wish to be there, sets that do, and what balance lets go.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::Checks;
use super::balance::{Measure, Weight};
use super::message::{Among, CANDIDATES_MAX, Candidate, EDGES_MAX, SETS_MAX, Side, Tie};
use super::survey::{Actor, Load, Set, Survey};
use crate::node::NodeId;

/// Whether an actor with so many messages wishes for a place that saves so many of them: a third at least.
pub(crate) fn wishes(score: i64, flow: u32) -> bool {
    score > 0 && score.saturating_mul(3) >= i64::from(flow)
}

/// Whether a set wishes for a place: it saves more than a fifth of its messages, and pays twice its move within a minute.
pub(super) fn set_wishes(gain: i64, flow: i64, cost: i64) -> bool {
    gain > 0 && gain.saturating_mul(5) > flow && gain >= cost.saturating_mul(2)
}

/// What a move gains for what it costs: the order of choice.
pub(crate) fn worth(gain: i64, cost: i64) -> i64 {
    gain.saturating_mul(1024) / cost.max(1)
}

/// What is to leave for balance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surplus {
    pub(super) measure: Measure,
    /// µs of CPU a second, or activations.
    pub(super) amount: i64,
}

/// A survey that can be looked up by hash.
pub(super) struct Index<'a> {
    survey: &'a Survey,
    by_hash: BTreeMap<u64, usize>,
    checks: Checks,
}

impl<'a> Index<'a> {
    pub(super) fn new(survey: &'a Survey, checks: Checks) -> Self {
        let by_hash = survey.actors.iter().enumerate().map(|(index, actor)| (actor.hash, index)).collect();
        Self { survey, by_hash, checks }
    }

    /// How much each other node is wished for, by actors and by sets.
    pub(super) fn wished(&self) -> BTreeMap<NodeId, i64> {
        let mut wished = BTreeMap::new();
        for actor in &self.survey.actors {
            for (node, _) in &actor.toward {
                if self.wishes(actor, *node) {
                    *wished.entry(*node).or_insert(0) += actor.score(*node);
                }
            }
        }
        for set in &self.survey.sets {
            let members = set.members.iter().filter_map(|hash| self.actor(*hash));
            let nodes: BTreeSet<NodeId> = members.flat_map(|actor| &actor.toward).map(|(node, _)| *node).collect();
            for node in nodes {
                if let Some(gain) = self.set_gain(set, node) {
                    *wished.entry(node).or_insert(0) += gain;
                }
            }
        }
        wished
    }

    /// What may go to `node`; `load` is this node's by its books.
    pub(super) fn side(&self, node: NodeId, load: Load, surplus: Option<Surplus>) -> Side {
        let chosen = self.chosen(node, surplus);
        let mut side = Side { load, ..Side::default() };
        let mut places = BTreeMap::new();
        for (place, actor) in chosen.iter().enumerate() {
            places.insert(actor.hash, place as u16);
            side.candidates.push(candidate(actor, node));
        }
        for set in self.survey.sets.iter().filter(|set| set.ready || surplus.is_some()) {
            let members: Option<Vec<u16>> = set.members.iter().map(|hash| places.get(hash).copied()).collect();
            side.sets.extend(members.filter(|members| !members.is_empty() && side.sets.len() < SETS_MAX));
        }
        let mut pairs = BTreeMap::new();
        for (place, actor) in chosen.iter().enumerate() {
            for edge in actor.edges.iter().take(EDGES_MAX) {
                let Some(other) = places.get(&edge.partner).filter(|other| usize::from(**other) != place) else {
                    continue;
                };
                let pair = (*other.min(&(place as u16)), *other.max(&(place as u16)));
                let flow = pairs.entry(pair).or_insert(0_u32);
                *flow = edge.flow.max(*flow);
            }
        }
        side.among.extend(pairs.into_iter().map(|((one, other), flow)| Among { one, other, flow }));
        side
    }

    /// The actors that may go to `node`, those with the strongest wishes first.
    fn chosen(&self, node: NodeId, surplus: Option<Surplus>) -> Vec<&'a Actor> {
        let mut chosen = Chosen::default();
        let mut sets: Vec<(i64, &Set)> = Vec::new();
        for set in &self.survey.sets {
            if let Some(gain) = self.set_gain(set, node) {
                let cost = self.members(set, node).into_iter().flatten().map(|actor| i64::from(actor.cost)).sum();
                sets.push((worth(gain, cost), set));
            }
        }
        sets.sort_by_key(|(worth, set)| (Reverse(*worth), set.members.first().copied()));
        let wishing = self.survey.actors.iter().filter(|actor| self.wishes(actor, node));
        let mut singles: Vec<&Actor> = wishing.collect();
        singles.sort_by_key(|actor| (Reverse(worth(actor.score(node), i64::from(actor.cost))), actor.hash));
        // Some room is the sets'.
        singles.iter().take(CANDIDATES_MAX - ROOM_OF_SETS).for_each(|actor| chosen.add(actor));
        for (_, set) in sets.into_iter().take(SETS_MAX) {
            chosen.add_set(self.members(set, node));
        }
        singles.iter().for_each(|actor| chosen.add(actor));
        if let Some(surplus) = surplus {
            self.add_surplus(node, surplus, &mut chosen);
        }
        chosen.actors
    }

    /// Adds what balance may let go: whole sets, then single actors, those first that lose least for their load. Twice as much
    /// as is to go, as not all will fit. Nobody goes alone whose set is light enough to go.
    fn add_surplus(&self, node: NodeId, surplus: Surplus, chosen: &mut Chosen<'a>) {
        let amount = |weight: Weight| match surplus.measure {
            Measure::Share => weight.cpu,
            Measure::Count => weight.activations,
        };
        let mut left = surplus.amount.saturating_mul(2);
        let (mut sets, mut together) = (Vec::new(), BTreeSet::new());
        for set in self.survey.sets.iter().filter(|_| self.checks.whole_sets) {
            let Some(members) = self.members(set, node) else { continue };
            let weighs = amount(weight_of(members.iter().map(|actor| actor.cpu)));
            if (1..=surplus.amount).contains(&weighs) {
                together.extend(set.members.iter().copied());
                sets.push((worth(self.gain(&members, node), weighs), weighs, members));
            }
        }
        sets.sort_by_key(|(worth, _, members)| (Reverse(*worth), members.first().map(|actor| actor.hash)));
        for (_, weighs, members) in sets.into_iter().take(SETS_MAX) {
            if left > 0 {
                left -= weighs;
                chosen.add_set(Some(members));
            }
        }
        let single = |actor: &Actor| weight_of([actor.cpu].into_iter());
        let goes =
            |actor: &&Actor| amount(single(actor)) > 0 && !together.contains(&actor.hash) && self.may_go(actor, node);
        let mut singles: Vec<&Actor> = self.survey.actors.iter().filter(goes).collect();
        singles.sort_by_key(|actor| (Reverse(worth(actor.score(node), amount(single(actor)))), actor.hash));
        for actor in singles {
            if left > 0 {
                left -= amount(single(actor));
                chosen.add(actor);
            }
        }
    }

    fn wishes(&self, actor: &Actor, node: NodeId) -> bool {
        let score = actor.score(node);
        let best = || actor.toward.iter().all(|(other, _)| actor.score(*other) <= score);
        let wishes = actor.ready && wishes(score, actor.flow) && self.may_go(actor, node);
        wishes && (self.checks.every_wish || best())
    }

    /// What a set gains by going to `node`, if it wishes to.
    fn set_gain(&self, set: &Set, node: NodeId) -> Option<i64> {
        let members = self.members(set, node).filter(|_| set.ready)?;
        let gain = self.gain(&members, node);
        let sum = |part: fn(&Actor) -> u32| members.iter().map(|actor| i64::from(part(actor))).sum();
        set_wishes(gain, sum(|actor| actor.flow), sum(|actor| actor.cost)).then_some(gain)
    }

    /// To `node`, less to who stays; what is inside counts for neither.
    fn gain(&self, members: &[&Actor], node: NodeId) -> i64 {
        let inside: BTreeSet<u64> = members.iter().map(|actor| actor.hash).collect();
        let mut pairs = BTreeMap::new();
        for actor in members {
            for edge in actor.edges.iter().take(EDGES_MAX).filter(|edge| inside.contains(&edge.partner)) {
                let pair = (actor.hash.min(edge.partner), actor.hash.max(edge.partner));
                let flow = pairs.entry(pair).or_insert(0_u32);
                *flow = edge.flow.max(*flow);
            }
        }
        let scores: i64 = members.iter().map(|actor| actor.score(node)).sum();
        scores + 2 * pairs.values().map(|flow| i64::from(*flow)).sum::<i64>()
    }

    /// The actors of a set, if all may go to `node`.
    fn members(&self, set: &Set, node: NodeId) -> Option<Vec<&'a Actor>> {
        set.members.iter().map(|hash| self.actor(*hash).filter(|actor| self.may_go(actor, node))).collect()
    }

    fn actor(&self, hash: u64) -> Option<&'a Actor> {
        self.by_hash.get(&hash).map(|index| &self.survey.actors[*index])
    }

    fn may_go(&self, actor: &Actor, node: NodeId) -> bool {
        !self.survey.barred.contains(&(actor.kind, node))
    }
}

#[derive(Default)]
struct Chosen<'a> {
    actors: Vec<&'a Actor>,
    hashes: BTreeSet<u64>,
}

impl<'a> Chosen<'a> {
    fn add(&mut self, actor: &'a Actor) {
        if self.actors.len() < CANDIDATES_MAX && self.hashes.insert(actor.hash) {
            self.actors.push(actor);
        }
    }

    /// Adds a set if there is room for all of it.
    fn add_set(&mut self, members: Option<Vec<&'a Actor>>) {
        let members = members.unwrap_or_default();
        if self.actors.len() + members.len() <= CANDIDATES_MAX {
            members.into_iter().for_each(|actor| self.add(actor));
        }
    }
}

pub(super) fn weight_of(cpus: impl Iterator<Item = u32>) -> Weight {
    cpus.fold(Weight::default(), |sum, cpu| Weight { cpu: sum.cpu + i64::from(cpu), activations: sum.activations + 1 })
}

fn candidate(actor: &Actor, node: NodeId) -> Candidate {
    let Actor { hash, epoch, flow, ready, cost, cpu, bytes, .. } = *actor;
    let there = actor.edges.iter().take(EDGES_MAX).filter(|edge| edge.at == node);
    let ties = there.map(|edge| Tie { partner: edge.partner, flow: edge.flow }).collect();
    Candidate { hash, epoch, flow, score: actor.score(node), ready, cost, cpu, bytes, ties }
}

/// Candidates that singles leave to sets.
const ROOM_OF_SETS: usize = 128;
