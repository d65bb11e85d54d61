//! Where the actors of a node go that leaves: to those that they talk with, and together with those that go, too.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use greenroom_protocols::heavy_edges::Edge;
use greenroom_protocols::node::NodeId;

use super::Common;
use super::survey::is_far;
use super::tables::Tables;
use crate::actor::key::ActorId;
use crate::shard::Shard;

/// Where those went that have left so far, from all shards.
#[derive(Default)]
pub(super) struct Leavers(Mutex<Gone>);

#[derive(Default)]
struct Gone {
    /// By their hashes.
    to: BTreeMap<u64, NodeId>,
    counts: BTreeMap<NodeId, usize>,
}

/// With whom an actor talks: the nodes, and the actors of this one, to which so much of its last messages went.
#[derive(Default)]
struct Talks {
    nodes: Vec<(NodeId, f32)>,
    partners: Vec<(u64, f32)>,
}

impl Leavers {
    fn gone(&self) -> MutexGuard<'_, Gone> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The node of `among` where an actor is nearest to those that it talks with. One of the others if that node gets too many, and whichever
    /// `draw` says if nothing is known. Who asks again is told the same.
    fn choose(&self, actor: u64, talks: &Talks, among: &[NodeId], draw: u64) -> Option<NodeId> {
        let mut gone = self.gone();
        if let Some(to) = gone.to.get(&actor).filter(|to| among.contains(to)) {
            return Some(*to);
        }
        let followed = talks.partners.iter().filter_map(|(partner, part)| Some((*gone.to.get(partner)?, *part)));
        let mut scores: BTreeMap<NodeId, f32> = BTreeMap::new();
        for (node, part) in talks.nodes.iter().copied().chain(followed).filter(|(node, _)| among.contains(node)) {
            *scores.entry(node).or_default() += part;
        }
        let most = gone.to.len() / among.len().max(1) * 5 / 4 + FEW;
        let has_room = |node: &NodeId| gone.counts.get(node).is_none_or(|count| *count < most);
        let best = scores.into_iter().filter(|(node, part)| *part > 0.0 && has_room(node));
        let best = best.max_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(node, _)| node);
        let drawn = || among.get((draw % among.len().max(1) as u64) as usize).copied();
        let to = best.or_else(drawn)?;
        gone.to.insert(actor, to);
        *gone.counts.entry(to).or_default() += 1;
        Some(to)
    }
}

/// Where an actor of `shard` goes, as its node leaves, of the nodes `among`; `None` if nothing is known of anybody here.
pub(super) fn whither(
    shard: &Shard,
    common: &Common,
    tables: &Tables,
    id: &ActorId,
    among: &[NodeId],
) -> Option<NodeId> {
    let (hash, now, draw) = (id.stable_hash(), shard.now(), shard.port().node.world().random());
    let Some(standing) = tables.flows.standing(hash, now) else {
        return common.leavers.choose(hash, &Talks::default(), among, draw);
    };
    let known = standing.known;
    let far = known.parts.into_iter().filter(|(place, _)| is_far(*place));
    let nodes = far.filter_map(|(place, part)| Some((common.places.node(place)?, part))).collect();
    let part = |edge: &Edge| (edge.a_second() / known.rate.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0) as f32;
    let partners = tables.edges.partners(hash, now).iter().map(|edge| (edge.partner, part(edge))).collect();
    common.leavers.choose(hash, &Talks { nodes, partners }, among, draw)
}

/// Actors that a node gets more than its share: the first ones choose freely.
const FEW: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: [NodeId; 2] = [NodeId(2), NodeId(3)];

    fn talks<const N: usize, const P: usize>(nodes: [(NodeId, f32); N], partners: [(u64, f32); P]) -> Talks {
        Talks { nodes: nodes.into(), partners: partners.into() }
    }

    #[test]
    fn an_actor_goes_where_most_of_its_messages_go_and_others_follow_it() {
        let leavers = Leavers::default();
        let [one, other] = NODES;
        let goes = |actor, talks, draw| leavers.choose(actor, &talks, &NODES, draw);
        assert_eq!(goes(10, talks([(other, 0.4)], [(11, 0.6)]), 0), Some(other));
        assert_eq!(goes(11, talks([(one, 0.3)], [(10, 0.5)]), 0), Some(other));
        assert_eq!(goes(12, talks([(one, 0.5)], [(10, 0.3)]), 1), Some(one));
        // Of whom nothing is known goes somewhere, and nowhere else when it is asked for again.
        assert_eq!(goes(13, Talks::default(), 1), Some(other));
        assert_eq!(goes(13, Talks::default(), 0), Some(other));
        assert_eq!(goes(14, talks([(NodeId(9), 1.0)], []), 0), Some(one));
        assert_eq!(leavers.choose(15, &Talks::default(), &[], 0), None);
    }

    #[test]
    fn one_node_does_not_get_all() {
        let leavers = Leavers::default();
        let to = (0..1000).map(|actor| leavers.choose(actor, &talks([(NODES[1], 1.0)], []), &NODES, actor));
        let at_one = to.filter(|to| *to == Some(NODES[1])).count();
        assert!((500..700).contains(&at_one), "{at_one} of 1000");
    }
}
