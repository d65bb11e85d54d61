//! The bad traces of load: who is full, who is emptied, and by which books. Each does not happen, and happens with its rule out.

use std::time::Duration;

use super::super::*;
use super::world::{World, without};

#[test]
fn o19_balance_does_not_empty_what_locality_has_filled() {
    let moves = |config| {
        let mut config: Config = config;
        config.checks.fruitless = false;
        let mut world = World::new(3, config);
        world.anchor(1, 1, 0);
        for hash in 1_000..1_180 {
            world.actor(hash, 1 + hash % 3, 10_000);
            world.talk(hash, 1, 100);
        }
        // What is measured wavers by 3 of a hundred.
        world.settle();
        let mut moves = 0;
        for second in 0..100_u64 {
            let wavers = |node: u64| (crate::mix::mix(second / 3 * 4 + node) % 7) as i64 - 3;
            world.stage.noise = (1..=3).map(|node| (NodeId(node), wavers(node))).collect();
            let moved = world.seconds(1);
            moves += if second < 50 { 0 } else { moved };
        }
        moves
    };
    let (kept, flaps) = (moves(Config::default()), moves(without(|checks| checks.hysteresis = false)));
    assert!(kept <= 10, "{kept}");
    assert!(flaps > 20 + kept, "{flaps}");
}

#[test]
fn o20_who_has_no_room_at_its_best_place_goes_to_its_second() {
    let run = |config| {
        let mut world = World::new(4, config);
        // Everybody talks most with the hub on node 1, which is full, and with somebody on node 2.
        world.anchor(1, 1, 380_000);
        world.anchor(2, 2, 0);
        for hash in 1_000..1_090 {
            world.actor(hash, 3 + hash % 2, 10_000);
            world.talk(hash, 1, 100);
            world.talk(hash, 2, 90);
        }
        world.settle();
        world.seconds(40);
        world.remote_percent()
    };
    let (kept, best_alone) = (run(Config::default()), run(without(|checks| checks.every_wish = false)));
    assert!(kept + 10 < best_alone, "{kept} and {best_alone}");
}

#[test]
fn o20_a_partner_that_takes_nothing_is_left_alone_ever_longer() {
    let visits = |config| {
        let mut world = World::new(2, config);
        world.anchor(1, 1, 600_000);
        for hash in 1_000..1_020 {
            world.actor(hash, 2, 1_000);
            world.talk(hash, 1, 100);
        }
        world.settle();
        world.seconds(120);
        world.ended.len()
    };
    let (kept, all) = (visits(Config::default()), visits(without(|checks| checks.fruitless = false)));
    assert!(kept <= 8, "{kept}");
    assert!(all > 40, "{all}");
}

#[test]
fn o21_a_new_node_fills_with_whole_games() {
    let torn = |config| {
        let mut world = World::new(2, config);
        for game in 0..20_u64 {
            let set: Vec<u64> = (0..9).map(|player| 100 * (game + 1) + player).collect();
            for hash in &set {
                world.actor(*hash, 1 + game % 2, 6_000 + (hash % 7) as u32 * 300);
            }
            for player in &set[1..] {
                world.talk(set[0], *player, 100);
            }
            world.stage.sets.push(set);
        }
        world.settle();
        world.seconds(5);
        assert_eq!(world.cut(), 0);
        world.join(3);
        let mut most = 0;
        for _ in 0..40 {
            world.seconds(1);
            most = most.max(world.remote_percent());
        }
        assert!(world.points(3) >= 35, "the new node has {} points", world.points(3));
        most
    };
    let (kept, single) = (torn(Config::default()), torn(without(|checks| checks.whole_sets = false)));
    assert!(kept <= 1, "{kept}");
    assert!(single > 3 && single > kept, "{single}");
}

#[test]
fn o27_a_node_that_joins_others_with_cores_to_spare_is_filled_to_the_mean() {
    let run = |config| {
        let mut world = World::new(4, config);
        for game in 0..80_u64 {
            let set: Vec<u64> = (0..9).map(|player| 100 * (game + 1) + player).collect();
            for hash in &set {
                world.actor(*hash, 1 + game % 4, 500);
            }
            for player in &set[1..] {
                world.talk(set[0], *player, 100);
            }
            world.stage.sets.push(set);
        }
        world.settle();
        world.seconds(5);
        world.join(5);
        let mut moves = world.seconds(60);
        let joined = world.stage.load(NodeId(5)).activations;
        moves += world.seconds(60);
        (joined, moves, world.cut())
    };
    let (joined, moves, cut) = run(Config::default());
    assert!((125..=180).contains(&joined), "it has {joined} of 144");
    assert!(moves <= 200, "{moves} moves for 144 actors");
    assert_eq!(cut, 0, "no game is torn");
    let (alone, ..) = run(without(|checks| checks.newcomers = false));
    assert_eq!(alone, 0);
}

#[test]
fn o28_who_is_filled_by_several_exchanges_is_filled_to_the_mean() {
    let run = |config| {
        let mut world = World::new(4, config);
        // More than one exchange takes, of any node.
        for game in 0..480_u64 {
            let set: Vec<u64> = (0..9).map(|player| 100 * (game + 1) + player).collect();
            for hash in &set {
                world.actor(*hash, 1 + game % 4, 50);
            }
            for player in &set[1..] {
                world.talk(set[0], *player, 100);
            }
            world.stage.sets.push(set);
        }
        world.settle();
        world.seconds(5);
        world.join(5);
        let moves = world.seconds(60);
        (world.stage.load(NodeId(5)).activations, moves, world.cut())
    };
    let (joined, moves, cut) = run(Config::default());
    assert!((820..=900).contains(&joined), "it has {joined} of 864");
    assert!(moves <= 900, "{moves} moves for 864 actors");
    assert_eq!(cut, 0, "no game is torn");
    let (joined, ..) = run(without(|checks| checks.filling = false));
    assert!(joined < 780, "{joined}");
}

#[test]
fn o22_a_giver_judges_by_its_books_and_not_by_what_was_measured_before_it_gave() {
    let least = |config| {
        let mut world = World::new(2, config);
        for hash in 1_000..1_080 {
            world.actor(hash, 1, 10_000);
        }
        world.settle();
        let stale: Vec<(NodeId, Measured)> = (1..=2)
            .map(|node| {
                let load = world.stage.load(NodeId(node));
                let at = world.now - Duration::from_secs(1);
                (NodeId(node), Measured { load, since: at, counted: at })
            })
            .collect();
        world.stage.measured.extend(stale);
        world.seconds(30);
        world.points(1)
    };
    assert!((40..=45).contains(&least(Config::default())));
    assert!(least(without(|checks| checks.books = false)) < 20);
}

#[test]
fn o22_what_moved_while_the_cores_were_measured_and_before_the_activations_were_counted_counts_for_the_cores_alone() {
    let at = |seconds: u64| Timestamp::from_nanos(seconds * 1_000_000_000);
    let mut books = books::Books::default();
    let (partner, x) = (NodeId(2), ExchangeId { by: NodeId(1), number: 1 });
    books.note(at(10), x, partner, 500, 3);
    let load = Load { busy: 1_000, cores: 1, activations: 10 };
    let measured = Measured { load, since: at(5), counted: at(11) };
    assert_eq!(books.own(measured), Load { busy: 1_500, ..load });
    let survey = Survey { others: [(partner, measured)].into(), ..Survey::default() };
    assert_eq!(books.of(partner, &survey), Load { busy: 500, ..load });
}
