//! Greenroom's explorer beside Shuttle's random walk: how many schedules of one program each runs in a second of one core, in turn,
//! several times over.
//!
//! ```text
//! cargo run --release --manifest-path peers/shuttle/Cargo.toml
//! ```
//!
//! The program: two clients read an account, add, and write it back, so that in some orders a deposit is lost. For the explorer the
//! account is an actor; for Shuttle it is a task with a mailbox, and what it is asked comes with a place for the answer: either may go on
//! with somebody else at each message and at each answer, and nowhere else. As threads with Shuttle's own channels, it may at each sending, too.

mod clock;
mod with_greenroom;
mod with_shuttle;

use std::time::Duration;

/// Runs of each; the median counts.
const RUNS: usize = 5;
/// Schedules of a run.
const SCHEDULES: u64 = 100_000;

/// What a run has shown.
struct Run {
    took: Duration,
    /// In how many of 100 schedules a deposit was lost.
    lost: f64,
}

impl Run {
    fn pace(&self) -> f64 {
        SCHEDULES as f64 / self.took.as_secs_f64()
    }
}

fn main() {
    let (mut ours, mut tasks, mut threads) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        ours.push(with_greenroom::run(SCHEDULES));
        tasks.push(with_shuttle::tasks(SCHEDULES));
        threads.push(with_shuttle::threads(SCHEDULES));
    }
    println!("two clients and an account, a random walk, schedules/s of one core (lowest, highest)");
    let ours = tell("greenroom", ours);
    let (tasks, threads) = (tell("shuttle, tasks", tasks), tell("shuttle, threads", threads));
    println!("greenroom / shuttle: {:.2} as tasks, {:.2} as threads", ours / tasks, ours / threads);
}

/// The median pace.
fn tell(name: &str, mut runs: Vec<Run>) -> f64 {
    runs.sort_by(|one, other| one.pace().total_cmp(&other.pace()));
    let pace = |place: usize| runs[place].pace();
    let (least, median, most) = (pace(0), pace(RUNS / 2), pace(RUNS - 1));
    let lost = runs[RUNS / 2].lost;
    println!("  {name:<16} {median:>8.0} ({least:.0}, {most:.0}); a deposit is lost in {lost:.0} % of the schedules");
    median
}
