//! Sets: actors that talk mostly among themselves, and would do better elsewhere together.
//!
//! One by one they stay: each has most of its messages with the others. An actor's *leader* is the local partner with at least
//! half of its messages; who is joined by leaders is a set, of at most 64. It wishes to be elsewhere when what its members send
//! there, less what they send to others here, is above a fifth of all that they send, and pays twice for their moves in a
//! minute.

use super::{Cost, Known, Level, Place, Standing};
use crate::heavy_edges::Edge;
use crate::heavy_edges::decay::a_second;

/// An actor that may be in a set.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Member {
    /// Its hash.
    pub actor: u64,
    /// Messages a second.
    pub rate: f64,
    /// What a move of it costs.
    pub cost: Cost,
    /// Samples since it arrived.
    pub samples: u16,
    /// The part of its messages that would be farther if it moved alone.
    pub here: f32,
    /// The parts of its messages for single places.
    pub parts: [(Place, f32); super::PARTS],
}

/// Actors that talk mostly among themselves.
#[derive(Clone, PartialEq, Debug)]
pub struct Set {
    /// Their hashes, in order; two to 64.
    pub members: Vec<u64>,
    /// Messages a second of all of them, those between two of them twice.
    pub flow: f64,
    /// The part of these that is between two of them.
    pub inside: f64,
    /// What the moves of all cost.
    pub cost: Cost,
    /// Where they wish to be, and the messages a second that would be nearer, less those that would be farther; the best first.
    /// Nowhere, as long as too little was seen of one of them.
    pub wishes: Vec<(Place, f64)>,
}

impl Member {
    /// An actor as it stands, for a set that moves at this level: its node or its shard is what it would leave.
    pub fn of(standing: &Standing, level: Level) -> Self {
        let Standing { actor, samples, known, .. } = *standing;
        let Known { rate, near, .. } = known;
        let here = if level == Level::Nodes { known.here() } else { near };
        let parts = known.parts.map(|(place, part)| if place.level() == Some(level) { (place, part) } else { NO_PART });
        Self { actor, rate, cost: known.price().at(level), samples, here, parts }
    }
}

/// The sets among `members`, those that wish to be elsewhere and those that do well where they are, by their first members'
/// hashes. `edges` are those of the members that are known now, weights decayed; others are passed over. The order of both does
/// not matter.
pub fn sets(mut members: Vec<Member>, edges: &[Edge]) -> Vec<Set> {
    members.sort_unstable_by_key(|member| member.actor);
    members.dedup_by_key(|member| member.actor);
    let actors: Vec<u64> = members.iter().map(|member| member.actor).collect();
    let place = |actor: u64| actors.binary_search(&actor).ok();
    let between: Vec<Between> = edges
        .iter()
        .filter_map(|edge| {
            let (actor, partner) = (place(edge.actor)?, place(edge.partner)?);
            (actor != partner).then(|| Between { actor, partner, rate: a_second(edge.weight) })
        })
        .collect();
    let mut leading: Vec<&Between> =
        between.iter().filter(|between| between.rate >= LEADS * members[between.actor].rate).collect();
    leading.sort_unstable_by(|a, b| b.rate.total_cmp(&a.rate).then((a.actor, a.partner).cmp(&(b.actor, b.partner))));
    let mut trees = Trees::new(members.len());
    for Between { actor, partner, .. } in leading {
        trees.join(*actor, *partner);
    }
    let mut found: Vec<Option<Set>> = vec![None; members.len()];
    let mut ripe = vec![true; members.len()];
    let mut local = vec![0.0; members.len()];
    for (index, member) in members.iter().enumerate() {
        let root = trees.root(index);
        if trees.sizes[root] < 2 {
            continue;
        }
        let none = Set { members: Vec::new(), flow: 0.0, inside: 0.0, cost: Cost(0.0), wishes: Vec::new() };
        let set = found[root].get_or_insert(none);
        set.members.push(member.actor);
        set.flow += member.rate;
        set.cost.0 += member.cost.0;
        ripe[root] &= member.samples >= SAMPLES_MIN;
        local[root] += f64::from(member.here) * member.rate;
        for (to, part) in member.parts.into_iter().filter(|(to, _)| *to != Place::NEAR) {
            let flow = f64::from(part) * member.rate;
            match set.wishes.iter_mut().find(|(known, _)| *known == to) {
                Some((_, all)) => *all += flow,
                None => set.wishes.push((to, flow)),
            }
        }
    }
    for Between { actor, partner, rate } in &between {
        let root = trees.root(*actor);
        if let Some(set) = found[root].as_mut().filter(|_| root == trees.root(*partner)) {
            set.inside += rate;
        }
    }
    let mut sets = Vec::new();
    for (root, set) in found.into_iter().enumerate() {
        let Some(mut set) = set else { continue };
        debug_assert!(set.members.len() <= MEMBERS_MAX, "a set is larger than it may be");
        let farther = (local[root] - set.inside).max(0.0);
        set.wishes.iter_mut().for_each(|(_, gain)| *gain -= farther);
        let Set { flow, cost, .. } = set;
        let pays = |gain: f64| gain > GAIN_OF_FLOW * flow && gain * PAYS_IN_S >= 2.0 * f64::from(cost.0);
        set.wishes.retain(|(_, gain)| ripe[root] && pays(*gain));
        set.wishes.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        sets.push(set);
    }
    sets.sort_unstable_by(|a, b| a.members.cmp(&b.members));
    sets
}

/// An edge between two members, by their places in the list, and its messages a second.
struct Between {
    actor: usize,
    partner: usize,
    rate: f64,
}

/// Who is joined with whom: trees whose roots stand for them.
struct Trees {
    parents: Vec<usize>,
    /// Of roots, how many are in their trees.
    sizes: Vec<usize>,
}

impl Trees {
    fn new(all: usize) -> Self {
        Self { parents: (0..all).collect(), sizes: vec![1; all] }
    }

    fn root(&mut self, mut of: usize) -> usize {
        while self.parents[of] != of {
            self.parents[of] = self.parents[self.parents[of]];
            of = self.parents[of];
        }
        of
    }

    /// Joins two trees, unless that makes too large a one.
    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        let size = self.sizes[a] + self.sizes[b];
        if a == b || size > MEMBERS_MAX {
            return;
        }
        let (small, large) = if self.sizes[a] < self.sizes[b] { (a, b) } else { (b, a) };
        self.parents[small] = large;
        self.sizes[large] = size;
    }
}

const NO_PART: (Place, f32) = (Place::NEAR, 0.0);
/// Actors of a set, at most.
pub const MEMBERS_MAX: usize = 64;
/// Samples of each member since it arrived, below which its set has no wish.
pub const SAMPLES_MIN: u16 = 16;
/// The part of an actor's messages that its leader has at least.
const LEADS: f64 = 0.5;
/// The part of a set's messages that it gains at least.
pub(super) const GAIN_OF_FLOW: f64 = 0.2;
/// Seconds in which a set's moves pay twice for themselves.
const PAYS_IN_S: f64 = 60.0;
