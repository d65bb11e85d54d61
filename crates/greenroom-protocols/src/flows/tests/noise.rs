//! Where nothing can be gained: few moves, and ever fewer (O18, O25).

use super::*;

/// Nodes of one shard each, and actors that go where they wish to be.
struct Nodes {
    flows: Vec<Flows>,
    dice: Dice,
    now: u64,
    /// On which node each actor is.
    homes: Vec<usize>,
    moves: u64,
    /// Messages of an actor from one look at its wishes to the next.
    looks_every: u64,
}

impl Nodes {
    fn new(nodes: usize, actors: usize, rules: Rules, seed: u64) -> Self {
        let flows = (0..nodes).map(|_| Flows::with_rules(0, at(0), rules)).collect();
        let homes = (0..actors).map(|actor| actor % nodes).collect();
        Self { flows, dice: Dice(seed << 32), now: 0, homes, moves: 0, looks_every: 1 }
    }

    /// Each actor has one message with an actor on the node that `partner` gives, and goes where it wishes to be.
    fn round(&mut self, mut partner: impl FnMut(u64, usize, &mut Dice) -> usize) {
        self.now += 100;
        let (now, looks) = (at(self.now), (self.now / 100).is_multiple_of(self.looks_every));
        for actor in 0..self.homes.len() as u64 {
            let home = self.homes[actor as usize];
            let place = seen_from(home, partner(actor, home, &mut self.dice));
            self.flows[home].sample(&message(actor, place), now, self.dice.word());
            if !looks {
                continue;
            }
            if let Some(to) = wishes(&mut self.flows[home], actor, now).first() {
                let new = usize::from(to.number());
                let known = self.flows[home].moved(actor, now).expect("it has a row");
                let old = seen_from(new, home);
                let known = known.from_node(old, |place| Some(seen_from(new, usize::from(place.number()))));
                self.flows[new].arrived(actor, &known, old, now, self.dice.word());
                self.homes[actor as usize] = new;
                self.moves += 1;
            }
        }
    }

    /// Moves for 1000 messages in so many rounds.
    fn moves_in(&mut self, rounds: u64, mut partner: impl FnMut(u64, usize, &mut Dice) -> usize) -> f64 {
        let before = self.moves;
        (0..rounds).for_each(|_| self.round(&mut partner));
        (self.moves - before) as f64 * 1000.0 / (rounds * self.homes.len() as u64) as f64
    }
}

/// A node as another one calls it.
fn seen_from(node: usize, other: usize) -> Place {
    if node == other { Place::NEAR } else { Place::away(other as u16) }
}

#[test]
fn an_actor_with_two_equal_homes_stays_ever_longer_and_without_judgement_goes_to_and_fro_o18() {
    let torn = |_: u64, _: usize, dice: &mut Dice| dice.below(2) as usize;
    let mut nodes = Nodes::new(2, 300, Rules::default(), 1);
    // An exchange every two seconds, 20 messages.
    nodes.looks_every = 20;
    let first = nodes.moves_in(1_000, torn);
    let later = nodes.moves_in(3_000, torn);
    assert!(first < 3.0 && later < first / 4.0, "{first}, then {later}");
    // The first wish that there is at any time is the worst choice of all.
    let mut hasty = Nodes::new(2, 300, Rules::default(), 1);
    let moves = [500, 1_000, 3_000].map(|rounds| hasty.moves_in(rounds, torn));
    assert!(moves[0] < 10.0 && moves[1] < 1.5 && moves[2] < 0.6, "{moves:?}");
    let mut unjudged = Nodes::new(2, 300, Rules { judged: false, ..Rules::default() }, 1);
    unjudged.looks_every = 20;
    let moves = [1_000, 3_000].map(|rounds| unjudged.moves_in(rounds, torn));
    assert!(moves[0] > 8.0 && moves[1] > 0.9 * moves[0], "{moves:?}");
}

#[test]
fn who_flees_from_its_partners_is_followed_ever_less() {
    let mut nodes = Nodes::new(2, 300, Rules::default(), 1);
    let moves = [500, 1_000, 3_000].map(|rounds| nodes.moves_in(rounds, |_, home, _| 1 - home));
    assert!(moves[0] < 20.0 && moves[1] < 3.0 && moves[2] < 2.0, "{moves:?}");
    let mut unjudged = Nodes::new(2, 300, Rules { judged: false, ..Rules::default() }, 1);
    assert!(unjudged.moves_in(500, |_, home, _| 1 - home) > 100.0);
}

#[test]
fn who_talks_to_all_nodes_alike_stays() {
    for nodes in [3, 4, 10] {
        let mut world = Nodes::new(nodes, 300, Rules::default(), 4);
        world.looks_every = 20;
        let moves = [1_000, 3_000].map(|rounds| world.moves_in(rounds, |_, _, dice| dice.below(nodes as u64) as usize));
        assert!(moves[0] < 3.0 && moves[1] < 0.5, "{nodes} nodes: {moves:?}");
    }
}

#[test]
fn a_kind_whose_moves_do_not_pay_learns_patience_and_one_whose_moves_pay_stays_quick() {
    let torn = |_: u64, _: usize, dice: &mut Dice| dice.below(2) as usize;
    let mut nodes = Nodes::new(2, 2_000, Rules::default(), 2);
    nodes.moves_in(500, torn);
    assert!(nodes.flows[0].memory(PLAYER) > 2.0 * MEMORY_MIN, "{}", nodes.flows[0].memory(PLAYER));
    // Games of 100 messages, each on either node.
    let mut players = Nodes::new(2, 2_000, Rules::default(), 2);
    let mut number = 0_u64;
    let moves = players.moves_in(2_000, |actor, _, _| {
        number += 1;
        mix((actor << 32) | (number / 200_000)) as usize % 2
    });
    assert!((4.0..6.0).contains(&moves), "every second game is elsewhere, for 100 messages: {moves}");
    assert_eq!(players.flows[0].memory(PLAYER), MEMORY_MIN);
    let Judged { good, bad, .. } = players.flows[0].judged();
    assert!(good > 50 * bad, "{good} moves were good and {bad} were not");
}

/// An actor with eight of nine messages here, of which one in `near` is sampled, and of the others one in `far`; how often it wishes to be elsewhere
/// after one of 10,000 messages.
fn wishes_of_who_is_at_home(near: u32, far: u32, rules: Rules) -> usize {
    let mut flows = Flows::with_rules(64, at(0), rules);
    flows.set_grain(near.max(far));
    let mut dice = Dice(7);
    let mut seen = 0;
    for message in 0..10_000 {
        let (place, stride) = if dice.below(9) > 0 { (Place::NEAR, near) } else { (B, far) };
        if dice.below(u64::from(stride)) > 0 {
            continue;
        }
        let sample = Sample { actor: 1, kind: PLAYER, place, weight: stride as f32 };
        let now = at(message);
        flows.sample(&sample, now, dice.word());
        seen += wishes(&mut flows, 1, now).len();
    }
    seen
}

#[test]
fn coarse_samples_make_nobody_wish_away_from_home_and_without_a_grain_one_alone_does_o25() {
    assert!(wishes_of_who_is_at_home(1, 1, Rules::default()) < 5);
    for (near, far) in [(12, 5), (5, 12), (64, 64)] {
        let coarse = wishes_of_who_is_at_home(near, far, Rules::default());
        let alone = wishes_of_who_is_at_home(near, far, Rules { by_grain: false, ..Rules::default() });
        assert!(coarse * 4 < alone, "1 in {near} and in {far}: {coarse} wishes, {alone} without the rule");
    }
}
