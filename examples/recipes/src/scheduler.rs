//! Jobs that run at their times, although nobody calls them and nodes come and go.

// anchor: recipe
use std::time::{Duration, SystemTime};

use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

/// A job, by its name as key.
#[derive(Default, Serialize, Deserialize, Actor)]
pub struct Job {
    runs: u64,
    last_due: Option<SystemTime>,
    missed: u64,
}

#[actor(persistent, save = "turn")]
impl Job {
    /// Runs every so many seconds from now on. To say it again changes the period.
    pub async fn schedule(&mut self, cx: &Cx, seconds: u64) -> Result<(), ReminderError> {
        JobRef::me(cx).run().every(Duration::from_secs(seconds)).await
    }

    /// Runs no more.
    pub async fn stop(&mut self, cx: &Cx) -> Result<(), ReminderError> {
        cx.reminders().cancel("run").await.map(drop)
    }

    /// A due time has come. It comes at least once, so one that was done is passed over.
    pub async fn run(&mut self, cx: &Cx) {
        let Some(tick) = cx.tick() else { return };
        if self.last_due >= Some(tick.due) {
            return;
        }
        self.last_due = Some(tick.due);
        self.missed += tick.missed;
        self.runs += 1;
    }

    /// How often it has run, and how many due times it has missed.
    pub async fn look(&self) -> (u64, u64) {
        (self.runs, self.missed)
    }
}
// end: recipe

#[cfg(test)]
mod tests {
    use greenroom_test::Cluster;

    use super::*;

    #[test]
    fn every_due_time_counts_once_though_nodes_die() {
        Cluster::of(3, |builder| builder.register::<Job>()).seeds(10, |cluster| async move {
            let job = || JobRef::of(&cluster.any(), "report");
            job().schedule(60).await.expect("it is scheduled");
            tokio::time::sleep(Duration::from_secs(90)).await;
            cluster.kill("b");
            tokio::time::sleep(Duration::from_secs(110)).await;
            let (runs, missed) = cluster.eventually(|| job().look()).await;
            assert_eq!(runs + missed, 3, "due at 60, 120 and 180 s");
            job().stop().await.expect("it is stopped");
            tokio::time::sleep(Duration::from_secs(120)).await;
            let (runs, missed) = cluster.eventually(|| job().look()).await;
            assert_eq!(runs + missed, 3);
        });
    }
}
