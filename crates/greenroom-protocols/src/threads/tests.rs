use proptest::prelude::*;

use super::closed_form::{Stage, sizes};
use super::queue::{erlang_c, wait_s};
use super::*;
use crate::mix::mix;

/// A class whose calls block, and hardly compute.
fn blocking(rate: f64, millis: f64, variation: f64) -> Class {
    let wall = Duration::from_secs_f64(millis / 1e3);
    Class { rate, cpu: wall / 100, wall, ready: Some(Duration::ZERO), blocks: true, variation }
}

fn computing(rate: f64, micros: u64) -> Class {
    let cpu = Duration::from_micros(micros);
    Class { rate, cpu, wall: cpu, ready: None, blocks: false, variation: 1.0 }
}

fn on(cores: f64) -> Config {
    Config { cores, ..Config::default() }
}

/// What a pool on two cores wants for these.
fn want(classes: &[Class]) -> usize {
    let load = Load::of(classes);
    wanted(&load, load.rate, &on(2.0)).0
}

/// Random words, the same for each seed.
struct Dice(u64);

impl Dice {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(1);
        ((mix(self.0) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -self.unit().ln() * mean
    }

    /// Times with this mean and variation: all the same, Erlang's, exponential, or two exponential ones mixed.
    fn service(&mut self, mean: f64, variation: f64) -> f64 {
        match variation {
            0.0 => mean,
            0.5 => self.exponential(mean / 2.0) + self.exponential(mean / 2.0),
            1.0 => self.exponential(mean),
            _ => {
                let part = (1.0 + ((variation - 1.0) / (variation + 1.0)).sqrt()) / 2.0;
                let part = if self.unit() < part { part } else { 1.0 - part };
                self.exponential(mean / (2.0 * part))
            }
        }
    }
}

/// The mean wait in a simulated queue of `threads`, over `calls`.
fn simulated_wait(threads: usize, rate: f64, service: f64, variation: f64, calls: u32) -> f64 {
    let (mut dice, mut free, mut now, mut waited) = (Dice(11), vec![0.0_f64; threads], 0.0, 0.0);
    for _ in 0..calls {
        now += dice.exponential(1.0 / rate);
        let first = free.iter_mut().min_by(|a, b| a.total_cmp(b)).expect("there is a thread");
        let begins = first.max(now);
        waited += begins - now;
        *first = begins + dice.service(service, variation);
    }
    waited / f64::from(calls)
}

#[test]
fn erlangs_c_is_what_the_tables_say() {
    let table = [(1, 0.5, 0.5), (2, 1.0, 1.0 / 3.0), (3, 2.0, 4.0 / 9.0), (5, 4.0, 0.5541), (10, 8.0, 0.4092)];
    for (servers, offered, part) in table {
        assert!((erlang_c(servers, offered) - part).abs() < 5e-5, "{servers} servers: {}", erlang_c(servers, offered));
    }
    assert!((erlang_c(100, 90.0) - 0.217).abs() < 5e-4, "{}", erlang_c(100, 90.0));
    assert_eq!([erlang_c(4, 4.0), erlang_c(0, 0.0)], [1.0, 1.0]);
    let huge = erlang_c(100_000, 99_000.0);
    assert!(huge > 0.0 && huge < 0.01, "{huge}");
}

#[test]
fn erlangs_c_is_the_sum_of_the_definition() {
    for (servers, offered) in [(2, 0.3), (4, 3.9), (12, 7.0), (20, 19.5)] {
        let power = |n: usize| (1..=n).fold(1.0, |product, k| product * offered / k as f64);
        let all_busy = power(servers) * servers as f64 / (servers as f64 - offered);
        let expected = all_busy / ((0..servers).map(power).sum::<f64>() + all_busy);
        assert!((erlang_c(servers, offered) - expected).abs() < 1e-12, "{servers}, {offered}");
    }
}

#[test]
fn waits_are_those_of_a_simulated_queue() {
    // Exact for exponential times, and near for others, where the wait is long enough to matter.
    let within = [(0.0, 0.2), (0.5, 0.1), (1.0, 0.05), (4.0, 0.2)];
    for (threads, offered) in [(1, 0.7), (2, 1.6), (4, 3.4), (8, 7.2)] {
        for (variation, error) in within {
            let model = wait_s(threads, offered, 1.0, variation);
            let seen = simulated_wait(threads, offered, 1.0, variation, 400_000);
            assert!((model / seen - 1.0).abs() < error, "{threads}, {variation}: {model}, simulated {seen}");
        }
    }
}

#[test]
fn a_pool_is_as_large_as_simulated_ones_say() {
    for (rate, millis, variation) in [(800.0, 2.0, 0.0), (100.0, 51.0, 1.0), (20.0, 5.0, 1.0), (300.0, 10.0, 4.0)] {
        let service = millis / 1e3;
        let wait = |threads| simulated_wait(threads, rate, service, variation, 300_000);
        let mut best = (rate * service) as usize + 1;
        while wait(best) - wait(best + 1) >= 100e-6 {
            best += 1;
        }
        let model = want(&[blocking(rate, millis, variation)]);
        assert!(model.abs_diff(best) <= 1, "{rate}/s of {millis} ms, {variation}: {model}, simulated {best}");
    }
}

#[test]
fn four_threads_do_for_eight_hundred_calls_a_second_that_block_for_two_milliseconds() {
    assert_eq!(want(&[blocking(800.0, 2.0, 0.0)]), 4);
}

#[test]
fn the_paper_asks_for_28_threads_where_ten_do() {
    let stage = Stage { rate: 100.0, service: Duration::from_millis(51), busy_part: 0.02 };
    let paper = sizes(&[stage], Config::default().eta, 2.0).expect("there are cores enough");
    assert_eq!((paper.whole(&[stage]), paper.theta), (vec![28], 0.0));
    let wanted = [0.0, 0.5, 1.0].map(|variation| want(&[blocking(100.0, 51.0, variation)]));
    assert!(wanted.iter().all(|threads| (9..=11).contains(threads)), "{wanted:?}");
}

#[test]
fn theorem_2_holds_where_there_are_cores_enough_and_theta_bounds_it_where_not() {
    let eta = Config::default().eta;
    let stages = [(12_774.0, 167, 1.0); 3].map(|(rate, micros, busy_part)| Stage {
        rate,
        service: Duration::from_micros(micros),
        busy_part,
    });
    let used = |threads: &[f64]| threads.iter().sum::<f64>();
    let free = sizes(&stages, eta, 1_000.0).expect("there are cores enough");
    assert!(free.theta == 0.0 && used(&free.threads) > 8.0, "alone it asks for more than there is: {free:?}");
    for (stage, threads) in stages.iter().zip(&free.threads) {
        let offered = stage.rate * stage.service.as_secs_f64();
        let theorem = offered + (offered / (3.0 * stage.rate * eta.as_secs_f64())).sqrt();
        assert!((threads - theorem).abs() < 1e-9);
    }
    let bound = sizes(&stages, eta, 8.0).expect("there are cores enough");
    assert!(bound.theta > 0.0 && (used(&bound.threads) - 8.0).abs() < 1e-6, "{bound:?}");
    assert_eq!(bound.whole(&stages).iter().sum::<usize>(), 9, "each needs three to do its work at all");
    assert_eq!(sizes(&stages, eta, 6.3), None);
}

#[test]
fn a_change_needs_three_windows_that_agree_and_threads_go_one_at_a_time() {
    let mut pool = Pool::new(Config { threads_min: 3, ..on(2.0) });
    let (busy, busier, idle) = ([blocking(800.0, 2.0, 0.0)], [blocking(1_400.0, 2.0, 0.0)], []);
    let told = |pool: &mut Pool, classes: &[Class]| pool.window(classes, 0.0);
    assert_eq!([told(&mut pool, &busier), told(&mut pool, &busy)], [None, None]);
    assert_eq!(told(&mut pool, &busier), Some(4), "all three wanted four at least");
    let wants = pool.why().wanted;
    assert!(wants > 4, "{wants}");
    for _ in 0..10 {
        assert_eq!([told(&mut pool, &busier), told(&mut pool, &busy)], [None, None], "they do not agree");
    }
    pool.config.threads_min = 1;
    let mut seen = Vec::new();
    for _ in 0..12 {
        seen.push(told(&mut pool, &idle));
    }
    let (none, fewer) = (None, [3, 2, 1].map(Some));
    assert_eq!(seen, [none, none, fewer[0], none, none, fewer[1], none, none, fewer[2], none, none, none]);
}

#[test]
fn threads_that_cannot_do_the_work_get_others_at_once() {
    let mut pool = Pool::new(Config { threads_min: 4, ..on(2.0) });
    let most_that_four_do = [blocking(1_999.0, 2.0, 0.0)];
    assert_eq!([0; 2].map(|_| pool.window(&most_that_four_do, 0.0)), [None, None], "they wait, but not for ever");
    let more = [blocking(800.0, 8.0, 0.0)];
    assert_eq!(pool.window(&more, 0.0), Some(want(&more)), "four do 500 a second");
    assert_eq!(pool.window(&[blocking(1e6, 8.0, 0.0)], 0.0), Some(200), "those keep both cores busy");
    let mut computes = Pool::new(Config { threads_min: 2, ..on(2.0) });
    assert_eq!(computes.window(&[computing(90_000.0, 1_000)], 0.0), None, "others would have no core");
}

#[test]
fn a_pool_begins_with_its_least_threads_and_keeps_them() {
    let mut pool = Pool::new(Config { threads_min: 3, ..on(2.0) });
    assert_eq!(pool.threads(), 3);
    (0..9).for_each(|_| assert_eq!(pool.window(&[], 0.0), None, "nothing comes, and it keeps three"));
    let busy = [blocking(800.0, 2.0, 0.0)];
    assert_eq!([0; 3].map(|_| pool.window(&busy, 0.0)), [None, None, Some(4)]);
    let fewer: Vec<_> = (0..9).filter_map(|_| pool.window(&[], 0.0)).collect();
    assert_eq!(fewer, [3], "no fewer than three");
}

#[test]
fn a_pool_that_computes_has_no_more_threads_than_cores() {
    let load = Load::of(&[computing(7_000.0, 1_000)]);
    assert_eq!(wanted(&load, load.rate, &on(8.0)), (8, Limit::Cores));
    let overload = Load::of(&[computing(90_000.0, 1_000)]);
    assert_eq!(wanted(&overload, overload.rate, &on(8.0)), (8, Limit::Cores));
    assert_eq!(wanted(&overload, overload.rate, &on(0.5)), (1, Limit::Cores), "one makes progress");
}

#[test]
fn threads_that_wait_for_a_core_are_not_taken_for_threads_that_block() {
    let ms = Duration::from_millis;
    let class = |wall, ready, blocks| Class { rate: 10.0, cpu: ms(4), wall, ready, blocks, variation: 0.0 };
    let service = |classes: &[Class]| Load::of(classes).service;
    assert_eq!(service(&[class(ms(10), Some(ms(6)), true)]), ms(4));
    assert_eq!(service(&[class(ms(10), Some(ms(2)), true)]), ms(8));
    assert_eq!(service(&[class(ms(10), Some(ms(90)), true)]), ms(4), "clocks differ a little");
    assert_eq!(service(&[class(ms(10), None, true)]), ms(10), "nobody says anything of cores");
    let learnt = service(&[class(ms(10), None, true), class(ms(6), None, false)]);
    assert_eq!(learnt, ms(6), "a codec waits half as long as it runs: (8 + 4) / 2");
}

#[test]
fn classes_of_different_times_vary_together() {
    let load = Load::of(&[blocking(50.0, 1.0, 0.0), blocking(50.0, 3.0, 0.0)]);
    assert_eq!((load.rate, load.service), (100.0, Duration::from_millis(2)));
    assert!((load.variation - 0.25).abs() < 1e-9 && (load.cores - 0.002).abs() < 1e-9, "{load:?}");
}

#[test]
fn a_thread_that_few_would_notice_is_not_added() {
    let load = Load::of(&[blocking(800.0, 2.0, 0.0)]);
    assert_eq!(wanted(&load, 800.0, &on(2.0)).0, 4);
    assert_eq!(wanted(&load, 8_000.0, &on(2.0)).0, 3, "a tenth of all calls would");
}

#[test]
fn a_pool_says_why() {
    let mut pool = Pool::new(on(2.0));
    assert_eq!(pool.why().limit, Limit::Idle);
    (0..3).for_each(|_| {
        pool.window(&[blocking(800.0, 2.0, 0.0)], 0.0);
    });
    assert_eq!(
        pool.why().to_string(),
        "4 threads: 800.0 calls a second of 2.0ms keep 1.60 busy; a call waits 37.8µs, with one thread fewer 195.6µs, with \
         one more 7.6µs; another one would cut the wait by too little"
    );
    pool.window(&[blocking(1_600.0, 2.0, 0.0)], 0.0);
    let why = pool.why().to_string();
    assert!(
        why.contains("one thread fewer for ever") && why.contains("; 1 window in a row wants more, the last one "),
        "{why}"
    );
}

#[test]
#[should_panic(expected = "measured as what cannot be")]
fn a_rate_that_is_no_number_is_a_mistake_of_the_caller() {
    Load::of(&[blocking(f64::NAN, 1.0, 0.0)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever was measured.
    #[test]
    fn a_pool_can_do_its_work_if_the_cores_can_and_is_bounded(
        rate in prop_oneof![0.0..1e7_f64, 1e7..1e300_f64], cpu in 0..10_000_000_u64, waits in 0..100_000_000_u64, variation in 0.0..100.0_f64, cores in 1..64_u32,
    ) {
        let (cpu, wall) = (Duration::from_nanos(cpu), Duration::from_nanos(cpu + waits));
        let load = Load::of(&[Class { rate, cpu, wall, ready: Some(Duration::ZERO), blocks: true, variation }]);
        let (threads, limit) = wanted(&load, load.rate, &on(f64::from(cores)));
        prop_assert!((1..=256).contains(&threads));
        if load.cores < f64::from(cores) && limit != Limit::Bound {
            prop_assert!(load.wait(threads).is_some(), "{threads}: {load:?}");
        }
        if limit == Limit::Gain && threads > 1 {
            let cut = load.wait_s(threads) - load.wait_s(threads + 1);
            prop_assert!(cut < 100e-6, "another one would cut {cut}");
        }
    }
}
