//! How many schedules of small programs are run in a second: `cargo run --release -p greenroom-explore --example pace`.

#[path = "../tests/bugs/programs/mod.rs"]
mod programs;

use greenroom_explore::Strategy;

use self::programs::Program;

fn main() {
    let schedules = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(100_000);
    for program in Program::ALL {
        for noisy in [0, 5] {
            let explore = program.explore(true).schedules(schedules).strategy(Strategy::Walk);
            let explored = explore.check(move |world| program.body(world, true, noisy));
            let explored = explored.unwrap_or_else(|failure| panic!("{failure}"));
            let pace = explored.schedules as f64 / explored.took.as_secs_f64();
            println!("{program:?}, {noisy} noisy clients: {pace:.0} schedules/s, of at most {} steps", explored.steps);
        }
    }
}
