//! Bad traces, each with the rule that prevents it and without.

use std::collections::BTreeMap;

use super::super::budget::SAMPLES_MIN;
use super::gap::{Gap, SAMPLES_MAX};
use super::*;
use crate::heavy_edges::HeavyEdges;

/// How many messages of its new game a player needs before it wishes to be there, after 25 minutes of another one where it is;
/// one message every `every` milliseconds.
fn messages_to_wish(rules: Rules, every: u64) -> u64 {
    let mut flows = Flows::with_rules(0, at(0), rules);
    let old = 25 * 60_000 / every;
    for number in 0..old {
        flows.sample(&message(1, Place::NEAR), at(number * every), mix(number));
    }
    let mut messages = 0;
    while wishes(&mut flows, 1, at((old + messages) * every)) != [B] {
        messages += 1;
        flows.sample(&message(1, B), at((old + messages) * every), mix(messages));
    }
    messages
}

#[test]
fn the_last_game_does_not_hold_a_player_for_the_next_o16() {
    for every in [10, 500, 60_000] {
        assert_eq!(messages_to_wish(Rules::default(), every), 4, "one message every {every} ms");
    }
    let by_time = Rules { by_messages: false, ..Rules::default() };
    assert!(messages_to_wish(by_time, 500) > 80, "{}", messages_to_wish(by_time, 500));
    assert!(messages_to_wish(by_time, 10) > 4_000);
    assert_eq!(messages_to_wish(by_time, 60_000), 1, "one stray message moves a slow actor");
}

/// How often each of the eight players of a game is sampled, to which it sends in turn.
fn sampled_players(mut gap: Gap) -> [u64; 8] {
    let mut dice = Dice(5);
    for _ in 0..5 * u64::from(SAMPLES_MAX) {
        if gap.message() {
            gap.sampled(dice.word());
        }
    }
    gap.second(Duration::from_secs(1), SAMPLES_MAX, dice.word());
    assert_eq!(gap.stride(), 8);
    let mut players = [0; 8];
    for number in 0..5 * SAMPLES_MAX as usize {
        if gap.message() {
            gap.sampled(dice.word());
            players[number % 8] += 1;
        }
    }
    players
}

#[test]
fn a_stride_of_eight_samples_all_players_of_a_game_of_eight_o17() {
    let drawn = sampled_players(Gap::new());
    assert!(drawn.iter().all(|times| (550..750).contains(times)), "{drawn:?}");
    let fixed = sampled_players(Gap::not_drawn());
    assert_eq!(fixed.iter().filter(|times| **times > 1).count(), 1, "{fixed:?}");
}

#[test]
fn whose_best_place_is_full_is_told_of_the_next_o20() {
    let wish = |rules| {
        let mut flows = Flows::with_rules(0, at(0), rules);
        flows.set_cost(PLAYER, Cost(1024.0));
        for number in 0..1_000 {
            flows.sample(&message(1, if number % 9 < 5 { B } else { C }), at(number), mix(number));
        }
        wishes(&mut flows, 1, at(1_000))
    };
    assert_eq!(wish(Rules::default()), [B, C]);
    assert_eq!(wish(Rules { every_place: false, ..Rules::default() }), [B]);
}

/// Actors with a hundred local partners of one message each and a remote one of ten: how many of 500 wish to be where that one
/// is, by their parts, and how many would by the heaviest edges, one for each actor.
#[test]
fn a_hundred_local_edges_of_one_outweigh_a_remote_one_of_ten_o23() {
    const ACTORS: u64 = 500;
    let (mut flows, mut edges, mut dice) = (Flows::new(0, at(0)), HeavyEdges::new(1 << 16, at(0)), Dice(0));
    let is_remote = |partner: u64| partner >= 1 << 40;
    for _ in 0..ACTORS * 110 {
        let (actor, number) = (dice.below(ACTORS), dice.below(110));
        let (partner, place) = if number < 100 { (number, Place::NEAR) } else { (1 << 40, B) };
        flows.sample(&message(mix(actor), place), at(0), dice.word());
        edges.add(mix(actor), partner + mix(actor) % (1 << 30), 1.0, at(0), dice.word());
    }
    let by_parts = (0..ACTORS).filter(|actor| wishes(&mut flows, mix(*actor), at(0)) == [B]).count();
    let mut parts: BTreeMap<u64, [f64; 2]> = BTreeMap::new();
    for edge in edges.heaviest(ACTORS as usize, at(0)) {
        parts.entry(edge.actor).or_default()[usize::from(is_remote(edge.partner))] += edge.weight;
    }
    let by_edges = parts.values().filter(|[local, remote]| remote - local >= (local + remote) / 3.0).count();
    assert!(by_parts <= 2 && by_edges > 400, "{by_parts} by parts, {by_edges} by edges");
}

#[test]
fn samples_are_bounded_each_second_and_stand_for_all_messages() {
    let (mut gap, mut dice) = (Gap::new(), Dice(1));
    for messages in [10_000, 1_000_000, 8_000_000, 20_000, 20_000, 500_000, 0, 100] {
        let (mut samples, mut weights) = (0, 0);
        for _ in 0..messages {
            if gap.message() {
                samples += 1;
                weights += u64::from(gap.sampled(dice.word()));
            }
        }
        assert!(samples <= SAMPLES_MAX, "{samples} of {messages}");
        let error = weights.abs_diff(messages) as f64;
        assert!(error < 0.1 * messages as f64 + 100.0, "{weights} instead of {messages}");
        assert_eq!(gap.messages(), weights);
        gap.second(Duration::from_secs(1), SAMPLES_MAX, dice.word());
        assert!(u64::from(gap.stride()) <= 1 + 2 * weights / u64::from(SAMPLES_MAX), "{}", gap.stride());
    }
    assert_eq!(gap.stride(), 1);
    for (budget, messages) in [(SAMPLES_MIN, 1_000_000), (SAMPLES_MIN, 2_000_000), (SAMPLES_MAX, 2_000_000)] {
        gap.second(Duration::from_secs(1), budget, dice.word());
        let mut samples = 0;
        for _ in 0..messages {
            if gap.message() {
                samples += 1;
                gap.sampled(dice.word());
            }
        }
        assert!(samples <= budget, "{samples} of {messages}");
    }
}

#[test]
#[should_panic(expected = "whose turn it is not")]
fn a_message_that_was_not_chosen_is_not_sampled() {
    let mut gap = Gap::new();
    assert!(gap.message());
    gap.second(Duration::from_secs(1), SAMPLES_MAX, 0);
    gap.sampled(0);
    while !gap.message() {}
    gap.sampled(1);
    gap.sampled(2);
}
