//! The bad traces of messages, locks and crashes: each does not happen, and happens with its rule out. Those of load are in `loads.rs`.

use std::time::Duration;

use super::super::*;
use super::world::{MILLI, World, without};

/// Names of exchanges.
fn x(by: u64, number: u64) -> ExchangeId {
    ExchangeId { by: NodeId(by), number }
}

/// An offer of nothing.
fn empty_offer(by: u64, number: u64) -> Message {
    Message::Offer(Offer { x: x(by, number), side: Side::default() })
}

fn accept(by: u64, number: u64, take: Vec<u64>) -> Message {
    let (give, stale) = (Vec::new(), Vec::new());
    Message::Accept(Accept { x: x(by, number), take, give, stale, load: Load::default() })
}

/// Nobody hears anybody.
fn silence(_: NodeId, _: NodeId, _: &Message) -> Vec<Duration> {
    Vec::new()
}

/// Actor 10 on node 1 talks to 20 on node 2 and to 30 on node 3, which cannot move.
fn torn(config: Config) -> World {
    let mut world = World::new(3, config);
    world.actor(10, 1, 0);
    world.anchor(20, 2, 0);
    world.anchor(30, 3, 0);
    world.talk(10, 20, 100);
    world.talk(10, 30, 90);
    world
}

#[test]
fn o1_who_proposes_grants_nothing() {
    let promised = |config| {
        let mut world = torn(config);
        world.fate = silence;
        world.settle();
        world.tick(1);
        assert_eq!(world.promised(10), [NodeId(2)].into());
        world.say(3, 1, empty_offer(3, 1));
        world.promised(10).len()
    };
    assert_eq!(promised(Config::default()), 1);
    assert_eq!(promised(without(|checks| checks.one_at_a_time = false)), 2);
}

#[test]
fn o2_two_that_talk_do_not_pass_each_other() {
    let run = |config| {
        let mut world = World::new(2, config);
        world.actor(1, 1, 0);
        world.actor(2, 2, 0);
        world.talk(1, 2, 100);
        world.settle();
        let moves = world.seconds(60);
        (moves, world.cut())
    };
    assert_eq!(run(Config::default()), (1, 0));
    let (moves, cut) = run(without(|checks| checks.scores_change = false));
    assert!(moves > 10 && cut == 100, "they pass each other {moves} times");
}

#[test]
fn o3_nothing_is_given_before_the_proposer_confirms() {
    let run = |config| {
        let mut world = World::new(3, config);
        // 10 and 20 talk; node 1 offers 10, gives up, and 10 goes to node 3 before the offer has come.
        world.actor(10, 1, 0);
        world.anchor(11, 1, 0);
        world.talk(10, 11, 40);
        world.actor(20, 2, 0);
        world.anchor(21, 2, 0);
        world.talk(20, 21, 30);
        world.talk(10, 20, 100);
        world.fate = |from, _, message| match message {
            Message::Offer(_) if from == NodeId(1) => vec![Duration::from_millis(600)],
            Message::Offer(_) => Vec::new(),
            _ => vec![MILLI],
        };
        world.settle();
        world.tick(1);
        world.pass(Duration::from_millis(550));
        world.put(10, 3);
        world.stage.believed.insert((20, 10), NodeId(1));
        world.pass(Duration::from_millis(300));
        world.cut()
    };
    assert_eq!(run(Config::default()), 140);
    assert_eq!(run(without(|checks| checks.confirm = false)), 170, "20 is given to a node that 10 has left");
}

#[test]
fn o4_an_answer_to_an_offer_that_was_given_up_is_dropped() {
    let promised = |config| {
        let mut world = torn(config);
        world.fate = silence;
        world.turn = |_| Duration::from_secs(9);
        world.settle();
        world.tick(1);
        assert_eq!(world.promised(10), [NodeId(2)].into());
        world.pass(Duration::from_millis(501));
        world.tick(1);
        world.say(2, 1, accept(1, 1, vec![10]));
        world.say(3, 1, accept(1, 2, vec![10]));
        world.promised(10).len()
    };
    assert_eq!(promised(Config::default()), 1);
    assert_eq!(promised(without(|checks| checks.in_hand = false)), 2);
}

/// 200 actors on node 1 that wish to be on node 2.
fn crowd(config: Config) -> World {
    let mut config = config;
    config.tolerance.count_min = 1_000;
    let mut world = World::new(2, config);
    world.anchor(1, 2, 0);
    for hash in 1_000..1_200 {
        world.actor(hash, 1, 0);
        world.talk(hash, 1, 100);
    }
    world
}

#[test]
fn o5_when_the_partner_dies_no_more_hang_than_there_is_credit() {
    let hang = |config| {
        let mut world = crowd(config);
        world.turn = |_| Duration::from_millis(300);
        world.settle();
        world.tick(1);
        world.pass(Duration::from_millis(10));
        world.stage.dead.insert(NodeId(2));
        world.seconds(2);
        assert_eq!(world.moves, 0);
        world.orders.len()
    };
    assert_eq!(hang(Config::default()), 32);
    assert_eq!(hang(without(|checks| checks.credit = false)), 200);
}

#[test]
fn o6_three_nodes_do_not_fill_an_empty_one_at_once() {
    let most = |config| {
        let mut world = World::new(4, config);
        world.anchor(1, 4, 0);
        for hash in 1_000..1_120 {
            world.actor(hash, 1 + hash % 3, 10_000);
            world.talk(hash, 1, 100);
        }
        world.turn = |_| Duration::from_millis(700);
        world.settle();
        (1..=3).for_each(|node| world.tick(node));
        let mut most = 0;
        for _ in 0..300 {
            world.pass(Duration::from_millis(100));
            most = most.max(world.points(4));
        }
        most
    };
    // The mean is 30.
    let kept = most(Config::default());
    assert!((25..=35).contains(&kept), "{kept}");
    let filled = most(without(|checks| checks.promises = false));
    assert!(filled > 40, "{filled}");
}

#[test]
fn o7_who_is_wanted_near_an_actor_that_has_gone_stays() {
    let run = |config| {
        let mut world = World::new(3, config);
        world.actor(10, 1, 0);
        world.actor(11, 1, 0);
        world.actor(20, 3, 0);
        world.talk(10, 20, 100);
        world.talk(10, 11, 40);
        // Node 1 has not heard that 20 has gone to node 3.
        world.stage.believed.insert((10, 20), NodeId(2));
        world.stage.dead.insert(NodeId(3));
        world.settle();
        world.tick(1);
        world.pass(Duration::from_millis(100));
        (world.place(10), world.cut(), world.cleared.clone())
    };
    assert_eq!(run(Config::default()), (1, 100, vec![(NodeId(1), 10, NodeId(2))]));
    assert_eq!(run(without(|checks| checks.stale = false)), (2, 140, Vec::new()));
}

#[test]
fn o7_the_chooser_is_told_so_as_well() {
    let run = |config| {
        let mut world = World::new(3, config);
        // Node 1 offers 10; node 2 would take it, and give 21 to be near 11, which has gone.
        world.actor(10, 1, 0);
        world.anchor(20, 2, 0);
        world.talk(10, 20, 100);
        world.actor(11, 3, 0);
        world.actor(21, 2, 0);
        world.talk(11, 21, 100);
        world.stage.believed.insert((21, 11), NodeId(1));
        world.stage.dead.insert(NodeId(3));
        world.settle();
        world.tick(1);
        world.pass(Duration::from_millis(100));
        (world.place(10), world.place(21), world.cleared.clone())
    };
    assert_eq!(run(Config::default()), (2, 2, vec![(NodeId(2), 21, NodeId(1))]));
    assert_eq!(run(without(|checks| checks.stale = false)), (2, 1, Vec::new()));
}

#[test]
fn o8_of_two_offers_that_meet_the_lower_nodes_stands() {
    let moves = |config| {
        let mut world = World::new(2, config);
        world.actor(10, 1, 0);
        world.anchor(20, 2, 0);
        world.talk(10, 20, 100);
        world.actor(11, 1, 0);
        world.anchor(21, 2, 0);
        world.talk(11, 21, 100);
        world.anchor(12, 1, 0);
        world.actor(22, 2, 0);
        world.talk(12, 22, 100);
        world.settle();
        world.tick(1);
        world.tick(2);
        world.seconds(1)
    };
    assert_eq!(moves(Config::default()), 3);
    assert_eq!(moves(without(|checks| checks.lower_stands = false)), 0, "both yield, and both wait");
}

#[test]
fn o9_when_one_side_is_slow_the_other_gets_no_further_ahead_than_its_credit() {
    let apart = |config| {
        let mut config: Config = config;
        config.credit = 2;
        (config.tolerance.count_min, config.tolerance.count_percent) = (4, 0);
        let mut world = World::new(2, config);
        world.anchor(1, 1, 0);
        world.anchor(2, 2, 0);
        for hash in 0..40 {
            world.actor(1_000 + hash, 1, 0);
            world.talk(1_000 + hash, 2, 100);
            world.actor(2_000 + hash, 2, 0);
            world.talk(2_000 + hash, 1, 100);
        }
        // Confirm and Done are lost, and node 2 is slow.
        world.fate = |_, _, message| match message {
            Message::Confirm { .. } | Message::Done { .. } => Vec::new(),
            _ => vec![MILLI],
        };
        world.turn = |node| if node == NodeId(2) { Duration::from_millis(400) } else { MILLI };
        world.settle();
        world.tick(1);
        let mut most = 0;
        for _ in 0..200 {
            world.pass(Duration::from_millis(10));
            most = most.max(world.count(2).abs_diff(world.count(1)));
        }
        most
    };
    let kept = apart(Config::default());
    assert!(kept <= 4 + 2 * 2, "{kept}");
    let without_credit = apart(without(|checks| checks.credit = false));
    assert!(without_credit > 20, "{without_credit}");
}

#[test]
fn o10_a_lock_ends_whoever_has_died() {
    let is_idle = |config| {
        let mut world = crowd(config);
        world.settle();
        world.tick(1);
        world.pass(Duration::from_millis(2));
        assert!(!world.nodes[&NodeId(2)].is_idle());
        world.stage.dead.insert(NodeId(1));
        world.pass(Duration::from_millis(3_600));
        world.nodes[&NodeId(2)].is_idle()
    };
    assert!(is_idle(Config::default()));
    assert!(!is_idle(without(|checks| checks.locks_end = false)));
}

#[test]
fn o11_a_lock_outlives_what_the_other_side_may_send() {
    let most = |config| {
        let mut config: Config = config;
        (config.tolerance.count_min, config.tolerance.count_percent) = (1, 0);
        (config.round, config.jitter) = (Duration::from_millis(300), Duration::ZERO);
        let mut world = World::new(3, config);
        // Node 1's actors are in the middle of long turns.
        world.anchor(1, 2, 0);
        for hash in 0..10 {
            for (name, node) in [(100 + hash, 1), (300 + hash, 3)] {
                world.actor(name, node, 0);
                world.talk(name, 1, 100);
            }
        }
        world.turn = |node| if node == NodeId(1) { Duration::from_millis(900) } else { MILLI };
        world.declines = false;
        world.settle();
        world.tick(1);
        let mut most = 0;
        for _ in 0..60 {
            world.pass(Duration::from_millis(100));
            most = most.max(world.count(2));
        }
        most
    };
    // The mean is 7.
    assert!(most(Config::default()) <= 8);
    assert!(most(without(|checks| checks.locks_outlive = false)) > 8);
}

#[test]
fn o12_an_order_moves_the_activation_that_was_offered_and_no_later_one() {
    let place = |config| {
        let mut world = torn(config);
        world.turn = |_| Duration::from_millis(500);
        world.settle();
        world.tick(1);
        world.pass(Duration::from_millis(100));
        assert_eq!(world.orders.len(), 1);
        // It ends, and is activated on node 3.
        world.put(10, 3);
        world.pass(Duration::from_millis(800));
        world.place(10)
    };
    assert_eq!(place(Config::default()), 3);
    assert_eq!(place(without(|checks| checks.epochs = false)), 2);
}

#[test]
fn o13_an_offer_that_comes_twice_is_granted_once() {
    let gives = |config| {
        let mut config: Config = config;
        (config.tolerance.count_min, config.tolerance.count_percent) = (2, 0);
        let mut world = World::new(2, config);
        world.anchor(1, 1, 0);
        world.anchor(2, 1, 0);
        for hash in 1_000..1_010 {
            world.actor(hash, 2, 0);
            world.talk(hash, 1, 100);
        }
        world.fate = silence;
        world.settle();
        world.declines = false;
        let load = Load { busy: 0, cores: 1, activations: 2 };
        let offer = Offer { x: x(1, 1), side: Side { load, ..Side::default() } };
        for _ in 0..2 {
            // All that node 1 says comes twice.
            world.say(1, 2, Message::Offer(offer.clone()));
            world.say(1, 2, Message::Confirm { x: x(1, 1), stale: Vec::new() });
            world.pass(Duration::from_millis(100));
            world.say(1, 2, Message::Done { x: x(1, 1), sent: 0 });
        }
        world.count(1)
    };
    // 12 in all: the two may be filled to 8.
    assert_eq!(gives(Config::default()), 7);
    assert!(gives(without(|checks| checks.numbers = false)) > 8);
}

#[test]
fn o14_an_order_that_waits_for_a_long_turn_is_withdrawn() {
    let place = |config| {
        let mut world = torn(config);
        world.turn = |_| Duration::from_secs(60);
        world.settle();
        world.tick(1);
        world.seconds(1);
        // Meanwhile it is at home where it is.
        world.anchor(11, 1, 0);
        world.talk(10, 11, 1_000);
        world.seconds(62);
        world.place(10)
    };
    assert_eq!(place(Config::default()), 1);
    assert_eq!(place(without(|checks| checks.deadlines = false)), 2);
}

#[test]
fn o30_who_never_comes_is_not_waited_for_when_all_others_have() {
    let rests = |config| {
        let mut world = crowd(config);
        world.unheard.extend([1_000, 1_001]);
        world.settle();
        world.tick(1);
        world.pass(Duration::from_millis(1_500));
        assert!(world.moves > 100, "{}", world.moves);
        world.rests()
    };
    assert!(rests(Config::default()));
    assert!(!rests(without(|checks| checks.over = false)));
}
