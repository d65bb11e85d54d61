//! How soon the classic mistakes are found, and that their repaired twins raise no alarm.
//!
//! `GREENROOM_SEEDS=40 cargo test --release -p greenroom-explore --test bugs -- --nocapture` prints the table of the guide;
//! `GREENROOM_SCHEDULES=100000 cargo test --release -p greenroom-explore --test bugs repaired` looks for alarms longer.

mod others;
mod programs;
mod threads;

use greenroom_explore::{Explored, Failure, Strategy};

use self::programs::Program;

/// Explores a program among noisy clients.
fn explore(program: Program, is_repaired: bool, seed: u64, strategy: Strategy) -> Result<Explored, Box<Failure>> {
    let explore = program.explore(is_repaired).seed(seed).strategy(strategy).schedules(SCHEDULES);
    explore.check(move |world| program.body(world, is_repaired, NOISY))
}

#[test]
fn each_mistake_is_found_among_noisy_clients_under_nearly_all_seeds() {
    let seeds = seeds();
    for program in Program::ALL {
        let mut found: Vec<u64> = (0..seeds)
            .filter_map(|seed| explore(program, false, seed, Strategy::Mixed).err())
            .map(|failure| {
                assert!(failure.deviations() <= 6, "{program:?}: {failure}");
                failure.schedule()
            })
            .collect();
        found.sort_unstable();
        let at = |part: usize| found.get(seeds as usize * part / 100).map_or("never".to_owned(), u64::to_string);
        println!(
            "{program:?}: found under {} of {seeds} seeds, by schedule {} at the median, {} under 95 %, {} at most",
            found.len(),
            at(50),
            at(95),
            found.last().copied().unwrap_or_default(),
        );
        assert!(found.len() as u64 * 20 >= seeds * 19, "{program:?}: {found:?}");
    }
}

#[test]
fn repaired_twins_raise_no_alarm() {
    for program in Program::ALL {
        let alone = program.explore(true).strategy(Strategy::Dpor).schedules(5_000);
        let explored = alone.check(move |world| program.body(world, true, 0));
        let explored = explored.unwrap_or_else(|failure| panic!("{program:?}: {failure}"));
        // Where nodes crash there are more traces than are run by default.
        if !program.has_crashes() {
            assert_eq!(explored.all, program != Program::Bank, "{program:?}: {explored}");
        }
        let noisy = explore(program, true, 0, Strategy::Mixed);
        println!("{program:?}: {}", noisy.unwrap_or_else(|failure| panic!("{program:?}: {failure}")));
    }
}

/// As many base seeds as are asked for.
fn seeds() -> u64 {
    std::env::var("GREENROOM_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(SEEDS)
}

const SEEDS: u64 = 4;
const SCHEDULES: u64 = 2_000;
const NOISY: usize = 5;
