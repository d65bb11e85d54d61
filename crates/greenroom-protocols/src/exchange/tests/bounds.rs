//! What is out of bounds is dropped, no message of whatever kind breaks a machine, and nobody gives more than it may.

use std::time::Duration;

use super::super::*;
use super::world::{MILLI, World};
use crate::mix::mix;

fn candidate(hash: u64) -> Candidate {
    let (epoch, ties) = (Epoch(1), Vec::new());
    Candidate { hash, epoch, flow: 10, score: 10, ready: true, cost: 16, cpu: 0, bytes: 0, ties }
}

fn offer(by: u64, number: u64, side: Side) -> Message {
    Message::Offer(Offer { x: ExchangeId { by: NodeId(by), number }, side })
}

#[test]
fn a_message_beyond_its_bounds_is_dropped() {
    let side = |candidates: Vec<Candidate>| Side { candidates, ..Side::default() };
    let most = side((0..CANDIDATES_MAX as u64).map(candidate).collect());
    let more = side((0..=CANDIDATES_MAX as u64).map(candidate).collect());
    let twice = side(vec![candidate(1), candidate(1)]);
    let absent = Side { sets: vec![vec![1]], ..side(vec![candidate(1)]) };
    let in_two = Side { sets: vec![vec![0], vec![0]], ..side(vec![candidate(1)]) };
    let sets = Side { sets: (0..=SETS_MAX as u16).map(|index| vec![index]).collect(), ..most.clone() };
    let among = |one, other| Side { among: vec![Among { one, other, flow: 1 }], ..side(vec![candidate(1)]) };
    let tied = Candidate { ties: vec![Tie { partner: 1, flow: 1 }; EDGES_MAX + 1], ..candidate(1) };
    let score = Candidate { score: i64::MAX, ..candidate(1) };
    assert_eq!(offer(1, 1, most).check(), Ok(()));
    let broken = [more, twice, absent, in_two, sets, among(0, 1), among(0, 0), side(vec![tied]), side(vec![score])];
    for (number, side) in broken.into_iter().enumerate() {
        let message = offer(1, 1 + number as u64, side);
        assert!(message.check().is_err(), "{message:?}");
        let mut world = World::new(2, Config::default());
        world.settle();
        world.say(1, 2, message);
        assert!(world.nodes[&NodeId(2)].is_idle());
    }
}

#[test]
fn who_takes_what_was_not_offered_gets_nothing() {
    let mut world = World::new(2, Config::default());
    world.fate = |_, _, _| Vec::new();
    world.actor(10, 1, 0);
    world.actor(11, 1, 0);
    world.anchor(20, 2, 0);
    world.talk(10, 20, 100);
    world.settle();
    world.tick(1);
    let (take, give, stale) = (vec![10, 11], Vec::new(), Vec::new());
    let x = ExchangeId { by: NodeId(1), number: 1 };
    world.say(2, 1, Message::Accept(Accept { x, take, give, stale, load: Load::default() }));
    assert!(world.orders.is_empty() && world.nodes[&NodeId(1)].is_idle());
}

#[test]
fn no_node_gives_more_actors_a_second_than_it_may() {
    let tolerance = Tolerance { count_min: 10_000, ..Tolerance::default() };
    let mut world = World::new(2, Config { tolerance, ..Config::default() });
    world.anchor(1, 2, 0);
    for hash in 1_000..6_000 {
        world.actor(hash, 1, 0);
        world.talk(hash, 1, 100);
    }
    world.settle();
    for _ in 0..8 {
        let before = world.orders.len();
        world.seconds(1);
        let orders = world.orders.len() - before;
        assert!(orders <= 550, "{orders} in one second");
    }
    assert!(world.moves >= 2_000, "{}", world.moves);
}

#[test]
fn after_a_change_of_the_view_there_is_quiet() {
    let mut world = World::new(2, Config::default());
    world.actor(10, 1, 0);
    world.anchor(20, 2, 0);
    world.talk(10, 20, 100);
    world.pass(Duration::from_millis(4_999));
    assert!(world.moves == 0 && world.ended.is_empty());
    assert_eq!(world.seconds(4), 1);
}

#[test]
fn nobody_exchanges_with_who_is_no_partner() {
    let mut world = World::new(2, Config::default());
    world.actor(10, 1, 0);
    world.anchor(20, 2, 0);
    world.talk(10, 20, 100);
    // Node 2 drains.
    for node in [1, 2] {
        world.event(NodeId(node), Event::Partners { view: 1, may: Default::default() });
    }
    world.settle();
    assert_eq!(world.seconds(30), 0);
    world.say(1, 2, offer(1, 9, Side { candidates: vec![candidate(10)], ..Side::default() }));
    assert!(world.nodes[&NodeId(2)].is_idle());
}

#[test]
fn whatever_is_said_no_machine_breaks_and_every_lock_ends() {
    for seed in 0..150_u64 {
        let mut dice = Dice(seed);
        let mut world = World::new(3, Config::default());
        world.fate = |from, to, message| match mix(from.0 * 31 + to.0 * 7 + message.x().number) % 4 {
            0 => Vec::new(),
            1 => vec![MILLI, Duration::from_millis(600)],
            _ => vec![MILLI],
        };
        world.turn = |node| Duration::from_millis(node.0 * 300);
        for hash in 0..30 {
            world.actor(hash, 1 + dice.below(3), 1_000 * dice.below(40) as u32);
            world.talk(hash, dice.below(30), 1 + dice.below(100) as u32);
        }
        world.settle();
        for _ in 0..100 {
            let (from, to) = (1 + dice.below(3), 1 + dice.below(3));
            let message = dice.message();
            world.say(from, to, message);
            world.pass(Duration::from_millis(dice.below(100)));
        }
        // All is silent: whatever they are in ends.
        world.fate = |_, _, _| Vec::new();
        let calm: Vec<NodeId> = world.nodes.keys().copied().collect();
        for node in calm {
            world.event(node, Event::Partners { view: 1, may: Default::default() });
        }
        world.seconds(5);
        assert!(world.rests(), "seed {seed}");
    }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, max: u64) -> u64 {
        self.0 = mix(self.0);
        self.0 % max
    }

    fn hashes(&mut self) -> Vec<u64> {
        let start = self.below(30);
        (start..start + self.below(6)).collect()
    }

    fn message(&mut self) -> Message {
        let x = ExchangeId { by: NodeId(1 + self.below(3)), number: self.below(12) };
        let stale = self.hashes();
        match self.below(5) {
            0 => {
                let candidates: Vec<Candidate> = self.hashes().into_iter().map(candidate).collect();
                let sets = if self.below(2) == 0 { vec![vec![0, 1]] } else { Vec::new() };
                let among = vec![Among { one: 0, other: 1, flow: u32::MAX }];
                let load = Load { busy: u64::MAX - self.below(2), cores: self.below(2) as u32, activations: u64::MAX };
                Message::Offer(Offer { x, side: Side { load, candidates, sets, among } })
            }
            1 => {
                let ties = vec![Tie { partner: self.below(30), flow: u32::MAX }];
                let given = |hash| Given { hash, epoch: Epoch(1), after: 0, cpu: u32::MAX, ties: ties.clone() };
                let give = self.hashes().into_iter().map(|hash| given(100 + hash)).collect();
                let (take, stale) = (self.hashes(), Vec::new());
                Message::Accept(Accept { x, take, give, stale, load: Load::default() })
            }
            2 => Message::Busy { x, wait: Duration::MAX },
            3 => Message::Confirm { x, stale },
            _ => Message::Done { x, sent: self.below(1 << 16) as u16 },
        }
    }
}
