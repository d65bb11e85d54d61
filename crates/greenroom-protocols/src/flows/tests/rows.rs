use proptest::prelude::*;

use super::*;

const OTHER: Place = Place::shard(1);
const THIRD: Place = Place::shard(2);

fn known(flows: &Flows, actor: u64) -> Known {
    flows.standing(actor, at(0)).expect("it has a row").known
}

fn part_of(known: &Known, place: Place) -> f32 {
    known.parts.iter().find(|(at, _)| *at == place).map_or(0.0, |(_, part)| *part)
}

fn sample(flows: &mut Flows, times: u64, actor: u64, place: Place) {
    for number in 0..times {
        flows.sample(&message(actor, place), at(0), mix(number));
    }
}

#[test]
fn a_player_follows_its_game_after_two_to_four_messages() {
    let mut flows = Flows::new(0, at(0));
    sample(&mut flows, 1, 1, B);
    assert!(wishes(&mut flows, 1, at(0)).is_empty());
    sample(&mut flows, 1, 1, B);
    assert_eq!(wishes(&mut flows, 1, at(0)), [B], "two, if it had none before");
    sample(&mut flows, 100, 2, Place::NEAR);
    sample(&mut flows, 3, 2, B);
    assert!(wishes(&mut flows, 2, at(0)).is_empty());
    sample(&mut flows, 1, 2, B);
    assert_eq!(wishes(&mut flows, 2, at(0)), [B], "four, if all were here");
}

#[test]
fn a_row_is_72_bytes_and_a_table_as_large_as_was_asked() {
    assert_eq!(size_of::<Row>(), 72);
    let capacity = |asked| Flows::new(asked, at(0)).capacity();
    assert_eq!([0, 8_192, 8_193, 30_000, 1 << 30].map(capacity), [8_192, 8_192, 16_384, 32_768, 262_144]);
}

#[test]
fn hot_actors_keep_their_rows_among_noise_and_the_sum_of_rates_is_kept() {
    let (mut flows, mut dice) = (Flows::new(0, at(0)), Dice(3));
    for round in 0..100_u64 {
        for hot in 0..1_000 {
            flows.sample(&message(hot, B), at(0), dice.word());
            flows.sample(&message(1_000 + (round * 1_000 + hot), B), at(0), dice.word());
        }
    }
    let kept = (0..1_000).filter(|hot| flows.standing(*hot, at(0)).is_some_and(|row| row.samples > 50)).count();
    assert!(kept >= 990, "{kept} of 1000");
    let sum: f64 = flows.standings(at(0)).map(|row| row.known.rate).sum();
    assert!((sum / a_second(200_000.0) - 1.0).abs() < 1e-3, "{sum}");
}

#[test]
fn whoever_sends_one_message_seldom_gets_a_row_where_there_is_no_room() {
    let (mut flows, mut dice) = (Flows::new(0, at(0)), Dice(4));
    for _ in 0..10 {
        (0..20_000).for_each(|actor| flows.sample(&message(actor, B), at(0), dice.word()));
    }
    (0..1_000).for_each(|new| flows.sample(&message(1_000_000 + new, B), at(0), dice.word()));
    let kept = (0..1_000).filter(|new| flows.standing(1_000_000 + new, at(0)).is_some()).count();
    assert!((10..200).contains(&kept), "{kept} of 1000");
}

#[test]
fn who_arrives_unknown_begins_with_what_its_kind_has_learnt() {
    let mut flows = Flows::new(0, at(0));
    let nothing = Known::nothing(PLAYER, Cost::default());
    for actor in 0..200 {
        flows.arrived(actor, &Known { memory: 64.0, ..nothing }, B, at(0), 0);
        sample(&mut flows, 64, actor, C);
        assert!(wishes(&mut flows, actor, at(0)).is_empty(), "it is judged");
    }
    let learnt = flows.memory(PLAYER);
    assert!(learnt > 30.0, "{learnt}");
    flows.arrived(1_000, &nothing, B, at(0), 0);
    sample(&mut flows, 1, 1_001, B);
    assert_eq!([1_000, 1_001].map(|actor| known(&flows, actor).memory), [learnt; 2]);
}

#[test]
fn the_table_is_looked_at_in_steps_and_each_wish_is_found_once_a_time() {
    let mut flows = Flows::new(0, at(0));
    (0..100).for_each(|actor| sample(&mut flows, 2, actor, B));
    let (mut found, mut steps) = (Vec::new(), 1);
    while !flows.look_on(1_000, at(0), &mut found) {
        steps += 1;
    }
    found.sort_by_key(|wish| wish.actor);
    assert_eq!((found.len(), steps), (100, 9));
    assert!(found.iter().map(|wish| wish.actor).eq(0..100));
    assert!((found[0].gain_a_second() - f64::from(found[0].gain) * a_second(2.0)).abs() < 1e-9);
}

#[test]
fn after_a_move_that_did_not_pay_as_many_samples_as_it_remembers_must_come_first() {
    let mut flows = Flows::new(0, at(0));
    flows.arrived(1, &Known::nothing(PLAYER, Cost::default()), B, at(0), 0);
    sample(&mut flows, 5, 1, Place::NEAR);
    sample(&mut flows, 4, 1, C);
    assert!(wishes(&mut flows, 1, at(0)).is_empty(), "it is judged: 5 saved, 16 paid");
    assert_eq!((known(&flows, 1).memory, flows.judged().bad), (8.0, 1));
    sample(&mut flows, 7, 1, C);
    assert!(wishes(&mut flows, 1, at(0)).is_empty());
    sample(&mut flows, 1, 1, C);
    assert_eq!(wishes(&mut flows, 1, at(0)), [C]);
    assert_eq!((known(&flows, 1).memory, flows.judged().bad), (8.0, 1), "a move is judged once");
}

#[test]
fn after_a_move_that_has_paid_an_actor_is_as_quick_as_it_may_be() {
    let mut flows = Flows::new(0, at(0));
    let patient = Known { memory: 16.0, ..Known::nothing(PLAYER, Cost::default()) };
    flows.arrived(1, &patient, B, at(0), 0);
    sample(&mut flows, 40, 1, Place::NEAR);
    sample(&mut flows, 20, 1, B);
    assert_eq!(wishes(&mut flows, 1, at(0)), [B]);
    assert_eq!(known(&flows, 1).memory, 8.0);
    assert_eq!(flows.judged(), Judged { good: 1, bad: 0, profit: 20.0 });
}

#[test]
fn who_loads_when_it_is_activated_is_more_patient() {
    let mut flows = Flows::new(0, at(0));
    assert_eq!((Cost::of(0), Cost::of(8192)), (Cost::default(), Cost(18.0)));
    flows.set_cost(PLAYER, Cost::of(8192));
    flows.set_loading(PLAYER, Duration::from_millis(1));
    sample(&mut flows, 50, 1, B);
    assert!(wishes(&mut flows, 1, at(0)).is_empty(), "a move costs 1129 messages");
    sample(&mut flows, 100, 1, B);
    assert_eq!(wishes(&mut flows, 1, at(0)), [B]);
    let Known { cost, .. } = known(&flows, 1);
    let price = known(&flows, 1).price();
    assert!(cost == Cost(18.0) && (1_100.0..1_150.0).contains(&price.0), "{cost:?}, {price:?}");
    sample(&mut flows, 50, 2, OTHER);
    flows.costs(2, Cost::of(64 << 20));
    assert_eq!(known(&flows, 2).memory, MEMORY_MAX);
}

#[test]
fn partners_on_another_shard_are_local_to_the_node_and_draw_to_their_shard() {
    let mut flows = Flows::new(0, at(0));
    for _ in 0..20 {
        sample(&mut flows, 2, 1, OTHER);
        sample(&mut flows, 1, 1, B);
    }
    let mut out = Vec::new();
    flows.wishes(1, at(0), &mut out);
    assert_eq!(out.iter().map(|wish| (wish.to, wish.cost.0)).collect::<Vec<_>>(), [(OTHER, 3.0)]);
    let mut there = Flows::new(0, at(0));
    let goes = flows.moved(1, at(0)).expect("it has a row");
    assert!(flows.standing(1, at(0)).is_none());
    there.arrived(1, &goes.from_shard(Place::shard(0), OTHER), Place::shard(0), at(0), 0);
    let here = known(&there, 1);
    assert_eq!((here.near, here.beside), (part_of(&goes, OTHER), 0.0));
    assert_eq!(part_of(&here, B), part_of(&goes, B));
    sample(&mut there, 3, 1, Place::NEAR);
    sample(&mut there, 5, 1, Place::shard(0));
    assert_eq!(wishes(&mut there, 1, at(0)), []);
    assert_eq!(there.judged().bad, 1, "3 saved, 5 lost, where 3 would have paid");
}

#[test]
fn callers_that_are_no_actors_are_on_the_node_and_on_no_shard_of_it() {
    let mut flows = Flows::new(0, at(0));
    for _ in 0..20 {
        for place in [Place::OUTSIDE, B, C] {
            sample(&mut flows, 1, 1, place);
        }
        for place in [Place::OUTSIDE, OTHER] {
            sample(&mut flows, 1, 2, place);
        }
    }
    assert!(wishes(&mut flows, 1, at(0)).is_empty(), "each node calls it alike");
    assert_eq!(
        wishes(&mut flows, 2, at(0)),
        [OTHER],
        "its partner is there, and its callers are as near to all shards"
    );
    let goes = flows.moved(1, at(0)).expect("it has a row");
    assert!((goes.here() - goes.outside).abs() < 1e-6 && goes.outside > 0.2, "{goes:?}");
    let came = goes.from_node(B, |place| if place == B { Some(Place::NEAR) } else { Some(place) });
    assert_eq!((came.outside, part_of(&came, B)), (0.0, goes.outside), "these callers stay behind");
    flows.arrived(1, &came, B, at(0), 0);
    sample(&mut flows, 16, 1, Place::OUTSIDE);
    sample(&mut flows, 40, 1, C);
    assert_eq!(wishes(&mut flows, 1, at(0)), [C]);
    assert_eq!(flows.judged().good, 1, "it saved what its callers here sent");
}

#[test]
fn a_move_between_nodes_is_judged_even_if_another_shard_is_better_there() {
    let mut flows = [(); 2].map(|()| Flows::new(0, at(0)));
    flows[0].arrived(1, &Known::nothing(PLAYER, Cost::default()), B, at(0), 0);
    sample(&mut flows[0], 3, 1, OTHER);
    assert!(wishes(&mut flows[0], 1, at(0)).is_empty(), "it came three messages ago");
    sample(&mut flows[0], 1, 1, OTHER);
    assert_eq!(wishes(&mut flows[0], 1, at(0)), [OTHER]);
    let goes = flows[0].moved(1, at(0)).expect("it has a row").from_shard(THIRD, OTHER);
    flows[1].arrived(1, &goes, THIRD, at(0), 0);
    sample(&mut flows[1], 6, 1, B);
    assert!(wishes(&mut flows[1], 1, at(0)).is_empty());
    assert_eq!(flows[1].judged(), Judged { good: 0, bad: 1, profit: -2.0 });
}

#[test]
fn a_move_in_vain_doubles_what_was_remembered_however_coarse_samples_are() {
    for grain in [1, 4, 16] {
        let mut flows = Flows::new(0, at(0));
        flows.set_grain(grain);
        flows.arrived(1, &Known::nothing(PLAYER, Cost::default()), B, at(0), 0);
        let one = Sample { weight: grain as f32, ..message(1, C) };
        (0..4).for_each(|number| flows.sample(&one, at(0), mix(number)));
        wishes(&mut flows, 1, at(0));
        let Known { memory, .. } = known(&flows, 1);
        assert_eq!((flows.judged().bad, memory), (1, 2.0 * MEMORY_MIN * grain as f32));
    }
}

#[test]
fn where_a_partner_goes_its_part_goes_along() {
    let mut flows = Flows::new(0, at(0));
    flows.set_cost(PLAYER, Cost(1024.0));
    sample(&mut flows, 2_000, 1, Place::NEAR);
    sample(&mut flows, 1, 1, OTHER);
    let before = known(&flows, 1);
    flows.carry_over(1, 0.75, Place::NEAR, B);
    let after = known(&flows, 1);
    assert!((after.near - (before.near - 0.75)).abs() < 1e-6 && (part_of(&after, B) - 0.75).abs() < 1e-6);
    assert_eq!(wishes(&mut flows, 1, at(0)), [B], "nothing has to be learnt anew");
    flows.carry_over(1, 1.0, B, OTHER);
    flows.carry_over(1, 1.0, THIRD, B);
    let after = known(&flows, 1);
    assert!(part_of(&after, B) < 1e-6, "there was nothing at the third");
    assert!((after.beside - part_of(&after, OTHER)).abs() < 1e-6 && after.beside > 0.75);
    flows.clear(1, OTHER);
    assert!(known(&flows, 1).beside < 1e-6 && wishes(&mut flows, 1, at(0)).is_empty());
}

#[test]
fn nobody_wishes_to_be_at_a_place_that_is_lost_and_who_has_ended_wishes_nothing() {
    let mut flows = Flows::new(0, at(0));
    (1..3).for_each(|actor| sample(&mut flows, 9, actor, B));
    flows.forget(2);
    assert_eq!((wishes(&mut flows, 1, at(0)), wishes(&mut flows, 2, at(0))), (vec![B], vec![]));
    flows.arrived(1, &known(&flows, 1), B, at(0), 0);
    flows.lost(B);
    assert!(wishes(&mut flows, 1, at(0)).is_empty() && known(&flows, 1).unjudged.is_none());
}

#[test]
fn a_table_that_grows_keeps_what_it_knows_until_it_is_as_large_as_may_be() {
    let mut flows = Flows::new(0, at(0));
    let mut dice = Dice(3);
    for actor in 0..20_000 {
        flows.sample(&message(actor, B), at(0), dice.word());
    }
    let standings = |flows: &Flows| {
        let mut all: Vec<Standing> = flows.standings(at(1)).collect();
        all.sort_by_key(|standing| standing.actor);
        all
    };
    let before = standings(&flows);
    let sizes = std::iter::successors(Some(2 * ROWS_MIN), |size| Some((2 * size).min(ROWS_MAX)));
    for capacity in sizes.take(6) {
        flows.grow();
        assert_eq!(flows.capacity(), capacity);
        assert_eq!(standings(&flows), before);
    }
    assert!(before.iter().all(|standing| flows.standing(standing.actor, at(1)).is_some()));
}

#[test]
fn rates_and_cpu_are_those_of_the_last_half_minutes_however_long_nobody_looked() {
    let mut flows = Flows::new(0, at(0));
    for number in 0..2_000_u64 {
        let now = at(number * 100);
        flows.sample(&message(1, B), now, mix(number));
        flows.ran(1, Duration::from_millis(5), 1.0, now);
    }
    let standing = |millis| flows.standing(1, at(millis)).expect("it has a row").known;
    let known = standing(200_000);
    assert!((9.5..10.5).contains(&known.rate) && (0.0475..0.0525).contains(&known.cpu), "{known:?}");
    assert!((standing(230_000).rate * 2.0 - known.rate).abs() < 1e-3);
    flows.sample(&message(2, B), at(1_000_000_000), 0);
    assert!(flows.standing(1, at(1_000_000_000)).is_none(), "eleven days later its row is free");
}

#[test]
fn what_another_node_says_of_an_actor_may_be_anything() {
    let mut flows = Flows::new(0, at(0));
    for (actor, odd) in (1..).zip([f32::NAN, f32::INFINITY, -1.0, f32::MAX]) {
        let parts = [(B, odd), (C, odd), (B, odd), (Place::NEAR, odd)];
        let wide = f64::from(odd);
        let known = Known {
            cost: Cost(odd),
            memory: odd,
            rate: wide,
            cpu: wide,
            near: odd,
            beside: odd,
            outside: odd,
            parts,
            ..Known::nothing(PLAYER, Cost(odd))
        };
        flows.arrived(actor, &known.from_node(C, Some), B, at(0), 0);
        sample(&mut flows, 100, actor, B);
        let now = self::known(&flows, actor);
        assert!((MEMORY_MIN..=MEMORY_MAX).contains(&now.memory) && now.rate.is_finite() && now.cpu.is_finite());
        let sum = now.here() + now.parts.iter().map(|(_, part)| part).sum::<f32>();
        assert!((0.0..=6.0).contains(&sum), "{now:?}");
        wishes(&mut flows, actor, at(0));
    }
}

#[test]
fn places_are_what_they_were_made_of() {
    assert_eq!((Place::shard(7).level(), Place::shard(7).number()), (Some(Level::Shards), 7));
    assert_eq!((Place::away(0).level(), Place::away(0).number()), (Some(Level::Nodes), 0));
    assert_eq!([Place::NEAR, Place::OUTSIDE].map(Place::level), [None; 2]);
    assert_ne!(Place::away(PLACES_MAX - 1), Place::shard(0));
    let names = [Place::NEAR, Place::OUTSIDE, OTHER, C].map(|place| place.to_string());
    assert_eq!(names, ["near", "outside", "shard 1", "place 1"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// One sample of weight w is w samples of weight 1; parts are never more than there was; what has a part of two fifths for
    /// long is known.
    #[test]
    fn parts_are_parts_of_the_last_messages(seed in any::<u64>(), memory in 4.0_f32..1024.0) {
        let mut dice = Dice(seed);
        let begin = Known { memory, ..Known::nothing(PLAYER, Cost::default()) };
        let mut flows = Flows::new(0, at(0));
        (1..3).for_each(|actor| flows.arrived(actor, &begin, B, at(0), 0));
        for _ in 0..200 {
            let place = [Place::NEAR, Place::OUTSIDE, OTHER, B, C][dice.below(5) as usize];
            let weight = 1 + dice.below(9);
            flows.sample(&Sample { weight: weight as f32, ..message(1, place) }, at(0), dice.word());
            sample(&mut flows, weight, 2, place);
            let (one, each) = (known(&flows, 1), known(&flows, 2));
            for place in [B, C, OTHER] {
                prop_assert!((part_of(&one, place) - part_of(&each, place)).abs() < 1e-3);
            }
            let away: f32 = one.parts.iter().filter(|(at, _)| at.level() == Some(Level::Nodes)).map(|(_, part)| part).sum();
            prop_assert!((0.0..1.001).contains(&(one.here() + away)));
        }
        flows.set_grain(1);
        let mut truth = 0.0;
        for _ in 0..8 * memory as u64 + 100 {
            let to_b = dice.below(5) < 2;
            truth += (f32::from(u8::from(to_b)) - truth) / memory;
            let place = if to_b { B } else { Place::away(10 + dice.below(1_000) as u16) };
            flows.sample(&message(3, place), at(0), dice.word());
            flows.sample(&message(1, place), at(0), dice.word());
        }
        let part = part_of(&known(&flows, 1), B);
        prop_assert!(part <= truth + 0.02 && part >= truth - 0.25, "{part} of {truth}");
    }
}
