use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::sets::{MEMBERS_MAX, Member, Set, sets};
use super::*;
use crate::heavy_edges::{Edge, HALF_LIFE};

/// The weight of an edge with so many messages a second.
fn edge(actor: u64, partner: u64, a_second: f64) -> Edge {
    let weight = a_second * HALF_LIFE.as_secs_f64() / std::f64::consts::LN_2;
    Edge { actor, partner, weight }
}

fn member(actor: u64, rate: f64, here: f32, to_b: f32) -> Member {
    let none = (Place::NEAR, 0.0);
    Member { actor, rate, cost: Cost::default(), samples: 16, here, parts: [(B, to_b), none, none, none] }
}

/// A family of `size`: each sends six messages a second to the first, which sends them `to_b` times as many elsewhere.
fn family(first: u64, size: u64, to_b: f64) -> (Vec<Member>, Vec<Edge>) {
    let others = first + 1..first + size;
    let inside = 6.0 * (size - 1) as f64;
    let all = inside * (1.0 + to_b);
    let mut members = vec![member(first, all, (inside / all) as f32, (1.0 - inside / all) as f32)];
    members.extend(others.clone().map(|other| member(other, 6.0, 1.0, 0.0)));
    let edges = others.flat_map(|other| [edge(first, other, 6.0), edge(other, first, 6.0)]).collect();
    (members, edges)
}

#[test]
fn a_family_with_a_partner_elsewhere_goes_there_as_a_whole() {
    let (members, edges) = family(10, 6, 0.55);
    let found = sets(members.clone(), &edges);
    let [Set { members: who, flow, inside, cost, wishes }] = &found[..] else { panic!("one set: {found:?}") };
    assert_eq!((who, cost.0), (&(10..16).collect::<Vec<u64>>(), 96.0));
    assert!((flow - 76.5).abs() < 1e-3 && (inside - 60.0).abs() < 1e-3, "{flow}, {inside}");
    assert!(wishes.len() == 1 && wishes[0].0 == B && (wishes[0].1 - 16.5).abs() < 1e-3, "{wishes:?}");
    assert!(members.iter().all(|member| member.parts[0].1 - member.here < GAIN_MIN), "no one would go alone");
}

#[test]
fn a_set_that_gains_too_little_stays() {
    let count = |(members, edges): (Vec<Member>, Vec<Edge>)| {
        let found = sets(members, &edges);
        assert_eq!(found.len(), 1, "one set, whatever it wishes");
        found[0].wishes.len()
    };
    assert_eq!(count(family(10, 6, 0.55)), 1);
    assert_eq!(count(family(10, 6, 0.48)), 0, "below a fifth of its messages");
    let (mut members, edges) = family(10, 6, 0.55);
    members[3].cost = Cost(500.0);
    assert_eq!(count((members, edges)), 0, "it would take more than a minute to pay twice");
    let (mut members, edges) = family(10, 6, 0.55);
    members[3].samples = 15;
    assert_eq!(count((members, edges)), 0, "one has come just now");
    let (mut members, edges) = family(10, 6, 2.0);
    members[3].rate = 36.0;
    assert_eq!(sets(members, &edges)[0].members, [10, 11, 12, 14, 15], "one has most of its messages with others");
    assert_eq!(sets(vec![member(1, 9.0, 0.0, 1.0)], &[edge(1, 1, 9.0), edge(1, 7, 9.0)]), []);
}

#[test]
fn a_member_stands_as_its_level_sees_it() {
    let mut flows = Flows::new(0, at(0));
    for number in 0..400 {
        let place = [Place::NEAR, Place::shard(1), Place::OUTSIDE, B, B][number as usize % 5];
        flows.sample(&Sample { weight: 0.1, ..message(1, place) }, at(0), mix(number));
    }
    let standing = flows.standing(1, at(0)).expect("it has a row");
    let [node, shard] = [Level::Nodes, Level::Shards].map(|level| Member::of(&standing, level));
    assert!(
        (node.here - 0.6).abs() < 0.05 && (shard.here - 0.2).abs() < 0.05,
        "callers are on the node, and on no shard"
    );
    assert_eq!((node.cost.0, shard.cost.0), (16.0, 3.0));
    let places = |member: Member| member.parts.map(|(place, _)| place).into_iter().max();
    assert_eq!((places(node), places(shard)), (Some(B), Some(Place::shard(1))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any graph, told in any order.
    #[test]
    fn sets_share_no_member_are_bounded_and_do_not_depend_on_the_order(seed in any::<u64>()) {
        let mut dice = Dice(seed);
        let (mut members, mut edges) = (Vec::new(), Vec::new());
        for number in 0..1 + dice.below(12) {
            let (more, between) = family(number * 1_000, 2 + dice.below(90), 1.0);
            members.extend(more);
            edges.extend(between);
        }
        for _ in 0..dice.below(100) {
            edges.push(edge(dice.below(3_000), dice.below(3_000), 10.0));
        }
        let found = sets(members.clone(), &edges);
        let mut seen = BTreeSet::new();
        for set in &found {
            prop_assert!((2..=MEMBERS_MAX).contains(&set.members.len()) && set.members.is_sorted());
            prop_assert!(set.members.iter().all(|actor| seen.insert(*actor)));
        }
        for _ in 0..200 {
            let (a, b) = (dice.below(members.len() as u64) as usize, dice.below(edges.len() as u64) as usize);
            members.swap(0, a);
            edges.swap(0, b);
        }
        let again = sets(members, &edges);
        prop_assert_eq!(again.iter().map(|set| &set.members).collect::<Vec<_>>(), found.iter().map(|set| &set.members).collect::<Vec<_>>());
    }
}
