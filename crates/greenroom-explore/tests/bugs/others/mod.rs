//! Mistakes of other kinds, each with a twin in which it is repaired: the default strategy finds the one, and nothing in the other.

mod cache;
mod dunning;
mod reader;
mod saga;

use std::future::Future;

use greenroom_explore::{Explore, World};

/// Finds the mistake under several base seeds, breaks the test again by what the failure says, and finds nothing in the repaired twin.
/// `body` is told whether it is repaired.
fn is_told_apart<F: Future<Output = ()> + 'static>(
    name: &str,
    explore: &Explore,
    body: impl Fn(World, bool) -> F + Copy + Send + Sync + 'static,
) {
    let mut schedules = Vec::new();
    for seed in 0..SEEDS {
        let found = explore.clone().seed(seed).schedules(SCHEDULES).check(move |world| body(world, false));
        let failure = found.expect_err("it is wrong");
        let again = explore.clone().replay(failure.replay()).check(move |world| body(world, false));
        let again = again.map(|explored| explored.to_string());
        assert_eq!(again.expect_err("it breaks again").violated(), failure.violated());
        assert!(failure.deviations() <= 6, "{failure}");
        schedules.push(failure.schedule());
        if seed == 0 {
            println!("{name}: {failure}");
        }
    }
    let repaired = explore.clone().schedules(SCHEDULES).check(move |world| body(world, true));
    println!("{name}: found by {schedules:?}; repaired: {}", repaired.unwrap_or_else(|failure| panic!("{failure}")));
}

const SEEDS: u64 = 4;
const SCHEDULES: u64 = 500;
