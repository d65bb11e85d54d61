//! The choice: what each step is said to gain it gains, and none breaks the balance.

use proptest::prelude::*;

use super::super::balance::{Scales, Way};
use super::super::choice::{Choice, Question};
use super::super::side::Index;
use super::super::*;
use super::world::World;

/// Nodes 1 to 3 with these actors, as their node and their CPU, and these edges.
fn world(actors: &[(u64, u32)], edges: &[(usize, usize, u32)], config: Config) -> World {
    let mut world = World::new(3, config);
    for (hash, (node, cpu)) in actors.iter().enumerate() {
        world.actor(hash as u64, 1 + node % 3, *cpu);
    }
    let mut degrees = vec![0; actors.len()];
    let mut known = BTreeSet::new();
    for (one, other, flow) in edges {
        let (one, other) = (one % actors.len(), other % actors.len());
        let full = degrees[one].max(degrees[other]) >= EDGES_MAX;
        if one != other && !full && known.insert((one.min(other), one.max(other))) {
            degrees[one] += 1;
            degrees[other] += 1;
            world.talk(one as u64, other as u64, *flow);
        }
    }
    world
}

/// What node 2 chooses when node 1 offers it what it has, in both sides' words.
fn choose(world: &World) -> (Choice, [Side; 2]) {
    let [theirs, ours] = [1, 2].map(|node| {
        let survey = world.here(node).survey().into_owned();
        let other = NodeId(3 - node);
        Index::new(&survey, world.config.checks).side(other, survey.load.load, None)
    });
    let scales = scales(world);
    let here = world.here(2);
    let hosts = |hash| here.hosts(hash);
    let checks = world.config.checks;
    let (choice, _) = Question { theirs: &theirs, ours: &ours, hosts: &hosts, scales, checks }.choose();
    (choice, [theirs, ours])
}

fn scales(world: &World) -> Scales {
    let load = |node| world.stage.load(NodeId(node));
    Scales::new([load(2), load(1)], [load(3)].into_iter(), world.config.tolerance, world.config.checks)
}

fn actors() -> impl Strategy<Value = Vec<(u64, u32)>> {
    prop::collection::vec((0..3_u64, prop_oneof![Just(0), 0..60_000_u32]), 2..60)
}

fn edges() -> impl Strategy<Value = Vec<(usize, usize, u32)>> {
    prop::collection::vec((0..60_usize, 0..60_usize, 1..100_u32), 0..120)
}

/// Nodes that differ by nearly anything.
fn loose() -> Config {
    let tolerance = Tolerance { share: 100_000_000, count_min: 1_000, ..Tolerance::default() };
    Config { tolerance, ..Config::default() }
}

/// Nodes with few actors are in balance if they have about as many.
fn strict() -> Config {
    let tolerance = Tolerance { count_min: 3, ..Tolerance::default() };
    Config { tolerance, ..Config::default() }
}

proptest! {
    #[test]
    fn a_score_is_what_the_move_takes_off_the_flow_between_nodes(actors in actors(), edges in edges()) {
        let mut world = world(&actors, &edges, loose());
        let (choice, [theirs, ours]) = choose(&world);
        for step in choice.steps {
            let (side, to) = if step.way == Way::Take { (&theirs, 2) } else { (&ours, 1) };
            let before = world.cut() as i64;
            world.put(side.candidates[step.index].hash, to);
            prop_assert_eq!(before - world.cut() as i64, step.score);
            prop_assert!(step.score > 0);
        }
    }

    #[test]
    fn no_choice_breaks_the_balance(actors in actors(), edges in edges()) {
        let mut world = world(&actors, &edges, strict());
        let Tolerance { share, count_percent, count_min, .. } = world.config.tolerance;
        let load = |world: &World, node| world.stage.load(NodeId(node));
        let first = [1, 2].map(|node| load(&world, node));
        let all: Vec<Load> = (1..=3).map(|node| load(&world, node)).collect();
        let mean_share = all.iter().map(|load| load.busy).sum::<u64>() / 3;
        let mean_count = all.iter().map(|load| load.activations).sum::<u64>().div_ceil(3);
        let room = mean_count + count_min.max(mean_count * count_percent / 100);
        let (choice, [theirs, ours]) = choose(&world);
        for step in choice.steps {
            let (side, to) = if step.way == Way::Take { (&theirs, 2) } else { (&ours, 1) };
            world.put(side.candidates[step.index].hash, to);
            for (node, had) in [1, 2].into_iter().zip(first) {
                let has = load(&world, node);
                prop_assert!(has.activations <= had.activations.max(room));
                prop_assert!(has.busy <= had.busy.max(mean_share + share));
            }
            let apart = |loads: [Load; 2]| loads[0].busy.abs_diff(loads[1].busy);
            prop_assert!(apart([1, 2].map(|node| load(&world, node))) <= apart(first).max(share));
        }
    }

    #[test]
    fn in_a_graph_that_does_not_change_exchanges_lower_the_flow_and_end(actors in actors(), edges in edges()) {
        let mut world = world(&actors, &edges, loose());
        world.settle();
        let mut lowest = (world.cut(), 0);
        for _ in 0..300 {
            world.pass(Duration::from_millis(100));
            if world.rests() && world.moves > lowest.1 {
                prop_assert!(world.cut() < lowest.0);
                lowest = (world.cut(), world.moves);
            }
        }
        prop_assert_eq!(world.seconds(130), 0, "they go on moving");
    }

    #[test]
    fn balance_empties_a_full_node_to_about_the_mean_and_fills_no_other_one_beyond_it(cpus in prop::collection::vec(1_000..60_000_u32, 1..80)) {
        let actors: Vec<(u64, u32)> = cpus.into_iter().map(|cpu| (0, cpu)).collect();
        let mut world = world(&actors, &[], Config::default());
        world.settle();
        world.seconds(60);
        let busy = [1, 2, 3].map(|node| world.stage.load(NodeId(node)).busy);
        let mean = busy.iter().sum::<u64>() / 3;
        prop_assert!(busy[0] <= (mean + 110_000).max(500_000), "{:?}", busy);
        prop_assert!(busy[1].max(busy[2]) <= mean + 50_000, "{:?}", busy);
        prop_assert_eq!(world.seconds(60), 0, "balance does not come to rest");
    }
}

#[test]
fn a_set_goes_as_a_whole_where_none_of_its_actors_would_go_alone() {
    let place = |with_sets: bool| {
        let mut world = World::new(2, Config::default());
        world.anchor(1, 2, 0);
        for hash in 10..16 {
            world.actor(hash, 1, 0);
            world.talk(hash, 1, 40);
            world.talk(hash, 10 + (hash - 9) % 6, 60);
        }
        if with_sets {
            world.stage.sets.push((10..16).collect());
        }
        world.settle();
        world.seconds(10);
        [10, 13, 15].map(|hash| world.place(hash))
    };
    assert_eq!(place(false), [1, 1, 1]);
    assert_eq!(place(true), [2, 2, 2]);
}

#[test]
fn one_that_breaks_the_balance_waits_until_the_other_side_makes_room() {
    let mut world = World::new(3, Config::default());
    world.anchor(1, 1, 480_000);
    world.anchor(2, 2, 480_000);
    world.anchor(3, 3, 680_000);
    for hash in 0..10 {
        world.actor(100 + hash, 1, 20_000);
        world.talk(100 + hash, 2, 100);
        world.actor(200 + hash, 2, 20_000);
        world.talk(200 + hash, 1, 90);
    }
    let (choice, _) = choose(&world);
    assert_eq!(choice.steps.len(), 20, "all change places");
    let ways: Vec<Way> = choice.steps.iter().take(4).map(|step| step.way).collect();
    assert_eq!(ways, [Way::Take, Way::Give, Way::Take, Way::Give]);
}

#[test]
fn who_is_not_seen_for_long_enough_goes_nowhere_alone() {
    let mut world = World::new(2, Config::default());
    world.actor(1, 1, 0);
    world.anchor(2, 2, 0);
    world.talk(1, 2, 100);
    let mut survey = world.here(1).survey().into_owned();
    survey.actors[0].ready = false;
    let side = Index::new(&survey, Checks::default()).side(NodeId(2), Load::default(), None);
    assert!(side.candidates.is_empty());
}

#[test]
fn nobody_goes_to_a_node_that_does_not_host_its_kind() {
    let moves = |barred: bool| {
        let mut world = World::new(2, Config::default());
        world.anchor(1, 2, 0);
        // Alone, as a set, and for balance.
        for hash in 10..90 {
            world.actor(hash, 1, 10_000);
            world.talk(hash, 1, 100);
        }
        world.stage.sets.push((10..16).collect());
        world.stage.barred.extend(barred.then_some(NodeId(2)));
        world.settle();
        world.seconds(20)
    };
    assert!(moves(false) > 30);
    assert_eq!(moves(true), 0);
}

#[test]
fn o26_who_has_come_is_not_passed_by_partners_that_were_surveyed_before() {
    let (me, other, third) = (NodeId(1), NodeId(2), NodeId(3));
    let bob = Actor { hash: 20, flow: 100, toward: vec![(other, 100)], ready: true, ..Actor::default() };
    let edges = vec![Edge { partner: 10, at: me, flow: 40 }];
    let cid = Actor { hash: 30, flow: 100, here: 60, edges, ready: true, ..Actor::default() };
    let mut survey = Survey { actors: vec![bob, cid], ..Survey::default() };
    survey.moved(me, 10, (other, me), &[(20, 90), (99, 5)]);
    assert_eq!(
        (survey.actors[0].here, survey.actors[0].score(other)),
        (90, -80),
        "it does not go where its partner was"
    );
    survey.moved(me, 10, (me, third), &[(20, 200), (30, 1)]);
    let [bob, cid] = &survey.actors[..] else { panic!("nobody has gone") };
    assert_eq!((bob.here, bob.score(third)), (0, 90), "no more than there was");
    assert_eq!((cid.here, cid.toward[0], cid.edges[0].at), (20, (third, 40), third), "what it knows itself counts");
}
