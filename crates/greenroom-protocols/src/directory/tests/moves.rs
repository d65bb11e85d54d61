//! Moves, and nodes that drain.

use super::*;

/// The actor is on node 1, which owns its range; its state has set out for node 2.
fn departed() -> (Cluster, Move<u8>) {
    let mut cluster = Cluster::new(range_where(&[1, 2], 1, &[1, 2], 1), 2, &[1, 2]);
    let grant = cluster.grant(0, 1, 1);
    assert_eq!(cluster.call(1, &grant), Acceptance::Accepted);
    (cluster, Move { key: KEY, from: grant.placed, to: NodeId(2) })
}

fn back(wish: &Move<u8>) -> Move<u8> {
    Move { to: wish.from.node, ..*wish }
}

impl Cluster {
    fn decide(&mut self, owner: u64, wish: &Move<u8>) -> Decision {
        self.nodes.get_mut(&owner).unwrap().0.decide(at(0), wish)
    }

    fn granted(&mut self, owner: u64, wish: &Move<u8>) -> Grant {
        match self.decide(owner, wish) {
            Decision::Granted(grant) => grant,
            other => panic!("not granted: {other:?}"),
        }
    }
}

#[test]
fn the_target_gets_the_actor_under_a_new_epoch_and_the_source_no_more() {
    let (mut cluster, wish) = departed();
    let grant = cluster.granted(1, &wish);
    assert_eq!(grant.placed.node, NodeId(2));
    assert!(grant.placed.epoch > wish.from.epoch);
    assert_eq!(cluster.decide(1, &back(&wish)), Decision::Void);
    assert_eq!(cluster.resolve(0, 1), Resolution::At(grant), "callers are sent there");
    assert_eq!(cluster.nodes[&2].0.accept(&grant), Acceptance::Accepted);
}

#[test]
fn a_source_that_took_it_back_leaves_the_target_nothing() {
    let (mut cluster, wish) = departed();
    let grant = cluster.granted(1, &back(&wish));
    assert_eq!(grant.placed.node, NodeId(1));
    assert!(grant.placed.epoch > wish.from.epoch, "so that a late wish of the target finds another epoch");
    assert_eq!(cluster.decide(1, &wish), Decision::Void);
}

#[test]
fn who_asks_again_is_told_the_same_until_it_is_settled() {
    let (mut cluster, wish) = departed();
    let grant = cluster.granted(1, &wish);
    assert_eq!(cluster.decide(1, &wish), Decision::Granted(grant), "the first answer may be lost");
    cluster.nodes.get_mut(&1).unwrap().0.settled(&KEY, grant.placed);
    assert_eq!(cluster.decide(1, &wish), Decision::Void);
    assert_eq!(cluster.resolve(0, 1), Resolution::At(grant));
}

#[test]
fn no_other_placement_than_the_granted_one_ends_a_move() {
    let (mut cluster, wish) = departed();
    let grant = cluster.granted(1, &wish);
    let epochs = [wish.from.epoch, grant.placed.epoch, Epoch(grant.placed.epoch.0 + 1)];
    let all = (1..=3).flat_map(|node| epochs.map(|epoch| Placed { node: NodeId(node), epoch }));
    for other in all.filter(|placed| *placed != grant.placed) {
        cluster.nodes.get_mut(&1).unwrap().0.settled(&KEY, other);
        assert_eq!(cluster.decide(1, &wish), Decision::Granted(grant), "after the late notice of {other:?}");
    }
}

#[test]
fn a_grant_is_good_although_another_actor_of_the_range_was_released_under_a_later_epoch() {
    let (mut cluster, wish) = departed();
    let since = cluster.nodes[&2].0.floor();
    let grant = cluster.granted(1, &wish);
    let (target, _) = cluster.nodes.get_mut(&2).unwrap();
    let later = Epoch(grant.placed.epoch.0 + 1);
    target.release(KEY + 1, later);
    assert_eq!(target.accept_held(since, &grant), Acceptance::Accepted, "it came late");
    target.release(KEY, grant.placed.epoch);
    assert_eq!(target.accept_held(target.floor(), &grant), Acceptance::Stale, "it comes again, as does the state");
}

#[test]
fn the_target_takes_over_at_once_when_the_source_has_died() {
    let range = range_where(&[1, 2, 3], 2, &[2, 3], 2);
    let mut cluster = Cluster::new(range, 3, &[1, 2, 3]);
    let grant = cluster.grant(0, 2, 1);
    cluster.call(1, &grant);
    let wish = Move { key: KEY, from: grant.placed, to: NodeId(3) };
    let after = view(2, &[2, 3], &[(1, 9_000)]);
    cluster.view(2, &after);
    assert!(matches!(cluster.resolve(0, 2), Resolution::Wait { .. }), "others wait for the dead node's lease");
    assert_eq!(cluster.granted(2, &wish).placed.node, NodeId(3), "its activation had ended before the state left");
}

#[test]
fn a_source_whose_target_has_died_gets_the_actor_back() {
    let range = range_where(&[1, 2, 3], 2, &[1, 2], 2);
    let mut cluster = Cluster::new(range, 3, &[1, 2, 3]);
    let grant = cluster.grant(0, 2, 1);
    cluster.call(1, &grant);
    let wish = Move { key: KEY, from: grant.placed, to: NodeId(3) };
    cluster.view(2, &view(2, &[1, 2], &[(3, 9_000)]));
    assert_eq!(cluster.decide(2, &wish), Decision::Wait, "a dead node is given nothing");
    assert_eq!(cluster.granted(2, &back(&wish)).placed.node, NodeId(1));
}

#[test]
fn an_owner_that_recovers_decides_nothing() {
    let range = range_where(&[1, 2, 3], 1, &[2, 3], 2);
    let mut cluster = Cluster::new(range, 3, &[1, 2, 3]);
    let grant = cluster.grant(0, 1, 3);
    cluster.call(3, &grant);
    let wish = Move { key: KEY, from: grant.placed, to: NodeId(2) };
    let after = view(2, &[2, 3], &[(1, 0)]);
    cluster.view(2, &after);
    assert_eq!(cluster.decide(2, &wish), Decision::Wait);
    cluster.view(3, &after);
    assert_eq!(cluster.granted(2, &wish).placed.node, NodeId(2), "the source has reported what had set out");
    assert_eq!(cluster.decide(3, &wish), Decision::NotOwner(Some(NodeId(2))));
}

#[test]
fn a_move_of_an_actor_that_was_released_is_void() {
    let (mut cluster, wish) = departed();
    let released = cluster.release(1);
    cluster.event(0, 1, Event::Released(released));
    assert_eq!(cluster.decide(1, &wish), Decision::Void);
    assert_eq!(cluster.resolve(0, 1), Resolution::Absent);
}

fn draining(view: &Arc<View>, version: u64, nodes: &[u64]) -> Arc<View> {
    let mut view = View { version, ..View::clone(view) };
    for node in nodes {
        view.members.get_mut(&NodeId(*node)).expect("a member").draining = true;
    }
    Arc::new(view)
}

#[test]
fn a_node_that_drains_hands_its_ranges_over_and_keeps_its_activations_until_they_end() {
    let range = range_where(&[1, 2], 1, &[2], 2);
    let mut cluster = Cluster::new(range, 2, &[1, 2]);
    let grant = cluster.grant(0, 1, 1);
    cluster.call(1, &grant);
    let after = draining(&view(1, &[1, 2], &[]), 2, &[1]);
    cluster.view(2, &after);
    assert_eq!(cluster.resolve(0, 2), Resolution::Wait { until: None }, "until it has reported");
    cluster.view(1, &after);
    assert!(matches!(cluster.resolve(0, 2), Resolution::At(Grant { placed, .. }) if placed == grant.placed));
    let released = cluster.release(1);
    cluster.event(0, 2, Event::Released(released));
    let (owner, _) = cluster.nodes.get_mut(&2).unwrap();
    assert_eq!(owner.grant(at(0), KEY, NodeId(1)), Resolution::Absent, "it gets nothing new");
}

#[test]
fn a_range_that_a_joiner_had_and_drained_between_two_views_begins_anew() {
    let range = range_where(&[1, 2], 1, &[1, 2, 3], 3);
    let first = Arc::new(View { next_node: 3, ..View::clone(&view(1, &[1, 2], &[])) });
    let mut cluster = Cluster::new(range, 2, &[]);
    for node in [1, 2] {
        cluster.view(node, &first);
    }
    let grant = cluster.grant(0, 1, 2);
    cluster.call(2, &grant);
    let skipped_to = draining(&Arc::new(View { next_node: 4, ..View::clone(&view(3, &[1, 2, 3], &[])) }), 3, &[3]);
    cluster.view(1, &skipped_to);
    assert_eq!(cluster.resolve(0, 1), Resolution::Wait { until: None }, "node 3 may have granted the actor meanwhile");
}
