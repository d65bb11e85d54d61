use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn start() -> Timestamp {
    Timestamp::from_nanos(1_000_000_000)
}

/// Random words, the same for each seed.
struct Dice(u64);

impl Dice {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0 ^ 0x5EED_0000_0000_0000)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.word() % bound
    }
}

/// A full table: of 100,000 edges that sent one message each, 8,192 are kept.
fn crowded(seed: u64, rules: Rules) -> HeavyEdges {
    let (mut edges, mut dice) = (HeavyEdges::with_rules(CAPACITY_MIN, start(), rules), Dice(seed << 32));
    for number in 0..100_000 {
        edges.add(mix(number % 10_000), number, 1.0, start(), dice.word());
    }
    edges
}

fn sum(edges: &HeavyEdges, now: Timestamp, of: impl Fn(&Edge) -> bool) -> f64 {
    edges.heaviest(usize::MAX, now).iter().filter(|edge| of(edge)).map(|edge| edge.weight).sum()
}

#[test]
fn the_sum_of_any_edges_is_right_in_the_mean() {
    let (seeds, kept) = (20, |edge: &Edge| edge.partner % 7 == 3);
    let truth = (0..100_000).filter(|number| number % 7 == 3).count() as f64;
    let mean = (0..seeds).map(|seed| sum(&crowded(seed, Rules::default()), start(), kept)).sum::<f64>() / seeds as f64;
    assert!((mean / truth - 1.0).abs() < 0.02, "{mean} of {truth}");
    let all = sum(&crowded(0, Rules::default()), start(), |_| true);
    assert!((all - 100_000.0).abs() < 1e-3, "the sum of all is kept to the last: {all}");
}

#[test]
fn a_single_edge_is_right_in_the_mean_and_far_too_heavy_if_it_always_takes_the_name() {
    let mean = |rules| {
        let (crowded, mut dice) = (crowded(1, rules), Dice(7));
        let tries = 3_000;
        let weights = (0..tries).map(|number| {
            let (mut edges, partner) = (crowded.clone(), 1_000_000 + number);
            edges.add(mix(number), partner, 1.0, start(), dice.word());
            edges.weight(mix(number), partner, start())
        });
        weights.sum::<f64>() / tries as f64
    };
    let by_share = mean(Rules::default());
    assert!((0.7..1.3).contains(&by_share), "{by_share}");
    let always = mean(Rules { names_by_share: false });
    assert!(always > 8.0, "{always}");
}

#[test]
fn heavy_edges_are_kept_among_noise() {
    for seed in 0..5 {
        let (mut edges, mut dice) = (HeavyEdges::new(CAPACITY_MIN, start()), Dice(seed << 32));
        for round in 0..200 {
            // 500 pairs in a game, and twice as many messages that never come again.
            for heavy in 0..500 {
                edges.add(heavy, heavy + 500, 1.0, start(), dice.word());
                for _ in 0..2 {
                    edges.add(dice.below(100_000), 10_000 + dice.below(1 << 40), 1.0, start(), dice.word());
                }
            }
            assert!(round < 20 || edges.weight(3, 503, start()) > 0.0, "seed {seed}, round {round}");
        }
        let heaviest: BTreeMap<u64, u64> =
            edges.heaviest(500, start()).iter().map(|edge| (edge.actor, edge.partner)).collect();
        let kept = (0..500).filter(|heavy| heaviest.get(heavy) == Some(&(heavy + 500))).count();
        assert!(kept >= 495, "seed {seed}: {kept} of 500");
        for heavy in (0..500).filter(|heavy| heaviest.contains_key(heavy)) {
            let weight = edges.weight(heavy, heavy + 500, start());
            assert!((150.0..300.0).contains(&weight), "seed {seed}: {weight} of 200");
        }
    }
}

#[test]
fn a_hub_keeps_a_hundred_partners_and_lets_others_live() {
    let (mut edges, mut dice) = (HeavyEdges::new(CAPACITY_MIN, start()), Dice(0));
    let hub = mix(42);
    for _ in 0..20 {
        for partner in 0..3_000 {
            edges.add(hub, partner, 1.0, start(), dice.word());
        }
        for pair in 0..1_000 {
            edges.add(mix(pair + 1_000), pair, 3.0, start(), dice.word());
        }
    }
    assert!((100..=128).contains(&edges.partners(hub, start()).len()));
    let lost = (0..1_000).filter(|pair| edges.weight(mix(pair + 1_000), *pair, start()) == 0.0).count();
    assert!(lost < 40, "{lost} of 1000 are lost to a hub in 16 of 1024 sets");
}

#[test]
fn a_weight_halves_in_thirty_seconds_however_long_nobody_looks() {
    let mut edges = HeavyEdges::new(CAPACITY_MIN, start());
    edges.add(1, 2, 64.0, start(), 0);
    for (seconds, weight) in [(0, 64.0), (15, 64.0 / 2.0_f64.sqrt()), (30, 32.0), (180, 1.0)] {
        let now = start() + Duration::from_secs(seconds);
        assert!((edges.weight(1, 2, now) - weight).abs() < 1e-9, "after {seconds} s");
    }
    let long = |hours: u64| start() + Duration::from_secs(hours * 3600);
    edges.add(1, 2, 64.0, long(1), 0);
    assert!((edges.weight(1, 2, long(1)) - 64.0).abs() < 1e-9, "the first has faded");
    assert!(edges.weight(1, 2, long(100_000)) < 1e-9);
    edges.add(3, 4, 1.0, long(100_000), 0);
    assert_eq!(edges.len(), 1, "what has faded is free");
    assert!((edges.weight(3, 4, long(100_000)) - 1.0).abs() < 1e-9);
}

#[test]
fn a_table_that_grows_keeps_its_edges_until_it_is_as_large_as_may_be() {
    let mut edges = crowded(5, Rules::default());
    let all = |edges: &HeavyEdges| {
        let mut all: Vec<Edge> = edges.all(start()).collect();
        all.sort_by_key(|edge| (edge.actor, edge.partner));
        all
    };
    let before = all(&edges);
    let sizes = std::iter::successors(Some(2 * edges.capacity()), |size| Some((2 * size).min(CAPACITY_MAX)));
    for capacity in sizes.take(4) {
        edges.grow();
        assert_eq!(edges.capacity(), capacity);
        assert_eq!(all(&edges), before);
    }
    assert!(before.iter().all(|edge| edges.weight(edge.actor, edge.partner, start()) > 0.0));
}

#[test]
fn a_table_is_as_large_as_was_asked_within_its_bounds() {
    let capacity = |asked| HeavyEdges::new(asked, start()).capacity();
    assert_eq!([0, 8_192, 8_193, 30_000, 1 << 30].map(capacity), [8_192, 8_192, 16_384, 32_768, 65_536]);
    assert_eq!(size_of::<Edge>(), 24);
}

#[test]
#[should_panic(expected = "an edge without weight is counted")]
fn an_edge_without_weight_is_a_mistake_of_the_caller() {
    HeavyEdges::new(0, start()).add(1, 2, 0.0, start(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Edges, forgotten actors and merged tables in any order.
    #[test]
    fn forgotten_actors_have_no_edges_sums_are_kept_and_memory_never_grows(seed in any::<u64>()) {
        let mut dice = Dice(seed);
        let mut now = start();
        let (mut edges, mut sent) = (HeavyEdges::new(0, now), 0.0);
        for _ in 0..20 {
            let mut other = HeavyEdges::new(0, now);
            for _ in 0..2_000 {
                let (actor, partner, weight) = (dice.below(3_000), dice.below(3_000), 1.0 + dice.below(9) as f64);
                let table = if dice.below(2) == 0 { &mut edges } else { &mut other };
                table.add(actor, partner, weight, now, dice.word());
                sent += weight;
            }
            edges.merge(&other, now, dice.word());
            prop_assert!((sum(&edges, now, |_| true) / sent - 1.0).abs() < 1e-5);
            for _ in 0..20 {
                let actor = dice.below(3_000);
                let partners = edges.partners(actor, now);
                prop_assert!(partners.is_sorted_by(|a, b| a.weight >= b.weight) && partners.len() <= 128);
                prop_assert_eq!(partners.len(), edges.kept().filter(|edge| edge.actor == actor).count());
                prop_assert!(partners.iter().all(|edge| edges.weight(actor, edge.partner, now) == edge.weight));
                sent -= partners.iter().map(|edge| edge.weight).sum::<f64>();
                edges.forget(actor);
                prop_assert!(edges.partners(actor, now).is_empty());
            }
            prop_assert!(edges.len() <= CAPACITY_MIN && edges.capacity() == CAPACITY_MIN);
            // Up to ten minutes, so that origins are brought up to date.
            let passed = Duration::from_millis(dice.below(600_000));
            now = now + passed;
            sent *= (-passed.as_secs_f64() / 30.0).exp2();
        }
    }
}
