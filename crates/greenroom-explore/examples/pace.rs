//! How many schedules of small programs are run in a second of one core: `cargo run --release -p greenroom-explore --example pace`.
//!
//! `-- 20000 PoolServer` runs so many, and only programs of these names; `-- 20000 PoolServer 0` only without noisy clients, which is what to
//! count instructions of: those of 2,000 schedules less those of 1,000 are those of 1,000 schedules.

#[path = "../tests/bugs/programs/mod.rs"]
mod programs;

use std::time::{Duration, Instant};

use greenroom_explore::Strategy;

use self::programs::Program;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let schedules = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(100_000);
    let wanted = arguments.next().unwrap_or_default();
    let noise: Option<usize> = arguments.next().and_then(|count| count.parse().ok());
    for program in Program::ALL.into_iter().filter(|program| format!("{program:?}").starts_with(&wanted)) {
        for noisy in [0, 5].into_iter().filter(|noisy| noise.is_none_or(|noise| noise == *noisy)) {
            let explore = program.explore(true).schedules(schedules).strategy(Strategy::Walk);
            let clock = Clock::start();
            let explored = explore.check(move |world| program.body(world, true, noisy));
            let took = clock.took();
            let explored = explored.unwrap_or_else(|failure| panic!("{failure}"));
            let pace = explored.schedules as f64 / took.as_secs_f64();
            println!("{program:?}, {noisy} noisy clients: {pace:.0} schedules/s, of at most {} steps", explored.steps);
        }
    }
}

/// The time that this thread was on a core, where the system tells; else the time that has passed.
struct Clock {
    began: Instant,
    on_core: Option<Duration>,
}

impl Clock {
    fn start() -> Self {
        Self { began: Instant::now(), on_core: on_core() }
    }

    fn took(&self) -> Duration {
        let on_core = self.on_core.zip(on_core()).map(|(before, now)| now.saturating_sub(before));
        on_core.unwrap_or_else(|| self.began.elapsed())
    }
}

fn on_core() -> Option<Duration> {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    told.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}
