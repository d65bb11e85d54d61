//! Who goes to which shard.

use super::*;

fn at(second: u64) -> Timestamp {
    Timestamp::from_nanos(second * 1_000_000_000)
}

/// An actor that sends all its messages to one other.
fn one_of_two(hash: u64, shard: u16, (partner, its_shard): (u64, u16), cpu: u32) -> Actor {
    let (near, toward) = if shard == its_shard { (600, vec![]) } else { (0, vec![(its_shard, 600)]) };
    Actor { hash, shard, flow: 600, near, toward, ready: true, cpu, edges: vec![(partner, 600)] }
}

fn pair(first: u64, shards: [u16; 2], cpu: u32) -> [Actor; 2] {
    [
        one_of_two(first, shards[0], (first + 1, shards[1]), cpu),
        one_of_two(first + 1, shards[1], (first, shards[0]), cpu),
    ]
}

/// Lets `orders` be carried out: the pairs are told where their partners are now.
fn carry_out(actors: &mut [Actor], orders: &[Order]) {
    let at: BTreeMap<u64, u16> = actors
        .iter()
        .map(|actor| {
            (actor.hash, orders.iter().find(|order| order.hash == actor.hash).map_or(actor.shard, |order| order.to))
        })
        .collect();
    for actor in actors.iter_mut() {
        let partner = actor.edges[0].0;
        *actor = one_of_two(actor.hash, at[&actor.hash], (partner, at[&partner]), actor.cpu);
    }
}

fn survey(busy: Vec<u64>, actors: Vec<Actor>) -> Survey {
    Survey { busy, since: at(0), actors }
}

fn shards_of(actors: &[Actor]) -> Vec<u16> {
    actors.iter().map(|actor| actor.shard).collect()
}

#[test]
fn two_that_talk_come_together_and_do_not_pass_each_other() {
    let mut actors = pair(1, [0, 1], 1000).to_vec();
    let orders = Gathering::default().choose(at(1), &survey(vec![1000, 1000], actors.clone()));
    assert_eq!(orders.len(), 1, "{orders:?}");
    carry_out(&mut actors, &orders);
    assert_eq!(actors[0].shard, actors[1].shard);
    assert!(Gathering::default().choose(at(2), &survey(vec![2000, 0], actors)).is_empty(), "nobody goes any more");
}

#[test]
fn without_changed_scores_two_that_talk_pass_each_other() {
    let rules = Rules { scores_change: false, ..Rules::default() };
    let actors = pair(1, [0, 1], 1000).to_vec();
    let orders = Gathering::with_rules(rules).choose(at(1), &survey(vec![1000, 1000], actors));
    assert_eq!(orders.len(), 2);
}

#[test]
fn a_node_full_of_pairs_comes_together_and_stays_even() {
    let (pairs, cpu) = (64, 7_000_u32);
    let mut actors: Vec<Actor> = (0..pairs).flat_map(|number| pair(2 * number, [0, 1], cpu)).collect();
    let busy = |actors: &[Actor]| {
        [0, 1].map(|shard| actors.iter().filter(|actor| actor.shard == shard).map(|actor| u64::from(actor.cpu)).sum())
    };
    let mut gathering = Gathering::default();
    for second in 1..5 {
        let survey = Survey { since: at(second), ..survey(busy(&actors).to_vec(), actors.clone()) };
        let orders = gathering.choose(at(second), &survey);
        carry_out(&mut actors, &orders);
        let [one, other]: [u64; 2] = busy(&actors);
        assert!(one.abs_diff(other) <= TOLERANCE, "{one} and {other} after {} moves", orders.len());
    }
    assert!(actors.chunks(2).all(|pair| pair[0].shard == pair[1].shard), "{:?}", shards_of(&actors));
}

#[test]
fn a_shard_that_has_much_more_to_do_gives_whole_pairs_away() {
    let mut actors: Vec<Actor> = (0..8).flat_map(|number| pair(2 * number, [0, 0], 50_000)).collect();
    let orders = Gathering::default().choose(at(1), &survey(vec![800_000, 0], actors.clone()));
    carry_out(&mut actors, &orders);
    assert!(actors.chunks(2).all(|pair| pair[0].shard == pair[1].shard), "no pair is torn: {orders:?}");
    let there = actors.iter().filter(|actor| actor.shard == 1).count();
    assert!((6..=8).contains(&there), "about half of the load goes: {there} of 16 actors");
}

#[test]
fn one_pair_that_keeps_its_shard_busy_is_not_torn() {
    let actors = pair(1, [0, 0], 500_000).to_vec();
    let full = survey(vec![1_000_000, 0], actors);
    assert!(Gathering::default().choose(at(1), &full).is_empty(), "one would wish to come back at once");
    let rules = Rules { stays: false, ..Rules::default() };
    let mut torn = full;
    // Nobody knows that the two belong together.
    torn.actors.iter_mut().for_each(|actor| actor.edges.clear());
    assert!(Gathering::default().choose(at(1), &torn).is_empty());
    assert_eq!(Gathering::with_rules(rules).choose(at(1), &torn).len(), 1);
}

#[test]
fn what_has_just_moved_counts_where_it_is_now() {
    let actors: Vec<Actor> = (0..8).map(|hash| Actor { hash, flow: 10, cpu: 100_000, ..Actor::default() }).collect();
    for (books, more) in [(true, 0), (false, 4)] {
        let mut gathering = Gathering::with_rules(Rules { books, ..Rules::default() });
        let orders = gathering.choose(at(1), &survey(vec![800_000, 0], actors.clone()));
        assert_eq!(orders.len(), 4, "{orders:?}");
        let left: Vec<Actor> =
            actors.iter().filter(|actor| orders.iter().all(|order| order.hash != actor.hash)).cloned().collect();
        // What is measured is still of before.
        assert_eq!(gathering.choose(at(2), &survey(vec![800_000, 0], left)).len(), more);
    }
}

#[test]
fn locality_does_not_fill_a_shard_that_is_full() {
    let actors: Vec<Actor> = (0..64)
        .map(|hash| Actor {
            hash,
            shard: 0,
            flow: 600,
            toward: vec![(1, 600)],
            ready: true,
            cpu: 10_000,
            ..Actor::default()
        })
        .collect();
    let orders = Gathering::default().choose(at(1), &survey(vec![640_000, 640_000], actors));
    assert!(orders.len() <= 8, "{} go: 10 ms each, and 150 ms are the tolerance of two", orders.len());
}
