//! How soon the classic mistakes are found, and that their repaired twins raise no alarm.

mod programs;

use greenroom_explore::Strategy;

use self::programs::Program;

#[test]
fn each_mistake_is_found_among_noisy_clients_under_nearly_all_seeds() {
    for program in Program::ALL {
        let explore = |seed| program.explore().seed(seed).schedules(2_000);
        let found = |seed| explore(seed).check(move |world| async move { program.body(&world, false, 5) });
        let mut found: Vec<u64> =
            (0..SEEDS).map(|seed| found(seed).map_or_else(|failure| failure.schedule(), |_| u64::MAX)).collect();
        found.sort_unstable();
        let worst = found[found.len() * 95 / 100];
        println!(
            "{program:?}: found by schedule {} at the median, {worst} under 95 % of seeds",
            found[found.len() / 2]
        );
        assert!(worst <= 2_000, "{program:?}: {found:?}");
    }
}

#[test]
fn repaired_twins_raise_no_alarm() {
    for program in Program::ALL {
        let alone = program.explore().strategy(Strategy::Dpor).schedules(5_000);
        let explored = alone.check(move |world| async move { program.body(&world, true, 0) });
        let explored = explored.unwrap_or_else(|failure| panic!("{program:?}: {failure}"));
        assert!(explored.all, "{program:?}: {explored}");
        let noisy = program.explore().schedules(500);
        let explored = noisy.check(move |world| async move { program.body(&world, true, 5) });
        println!("{program:?}: {}", explored.unwrap_or_else(|failure| panic!("{program:?}: {failure}")));
    }
}

const SEEDS: u64 = 8;
