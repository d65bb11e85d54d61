//! Heartbeat: monitors that take status beats, some of which block the thread that they are taken on.

use std::thread;
use std::time::Duration;

use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

/// Where a beat blocks a thread, and for how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Blocks {
    /// Nowhere.
    No,
    /// In its turn: the thread of its shard.
    Turn(Duration),
    /// A thread of the node's pool for what blocks.
    Pool(Duration),
}

/// Takes the beats of one client.
#[derive(Default, Actor)]
pub struct Monitor {
    beats: u64,
}

#[actor]
impl Monitor {
    /// Takes a beat that computes for `work`; how many there were, this one among them.
    pub async fn beat(&mut self, cx: &Cx, work: Duration, blocks: Blocks) -> Result<u64, NotBegun> {
        self.beats += 1;
        compute(work);
        match blocks {
            Blocks::No => {}
            Blocks::Turn(time) => thread::sleep(time),
            Blocks::Pool(time) => cx.blocking(move || thread::sleep(time)).await?,
        }
        Ok(self.beats)
    }

    /// How many beats there were.
    pub async fn beats(&self) -> u64 {
        self.beats
    }
}

/// Keeps a core busy. By the thread's own clock: where threads are more than cores, time passes that nobody computes.
fn compute(work: Duration) {
    if work.is_zero() {
        return;
    }
    let end = thread_time() + work;
    while thread_time() < end {
        for _ in 0..SPINS {
            std::hint::spin_loop();
        }
    }
}

/// Time for which this thread has had a core.
fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes into `time`, which outlives it, and does nothing else.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Pauses of a core between two looks at the clock.
const SPINS: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_the_time_of_a_core() {
        let before = thread_time();
        compute(Duration::from_millis(2));
        assert!(thread_time() - before >= Duration::from_millis(2));
    }
}
