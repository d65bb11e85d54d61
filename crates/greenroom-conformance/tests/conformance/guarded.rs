//! An actor whose turns are checked to be alone.

use std::time::Duration;

use greenroom::prelude::*;
use greenroom_protocols::checks::Checks;
use greenroom_sim::{Exclusive, Random, Sim};

use crate::cluster::Cluster;

/// A cluster whose nodes host guarded actors, under these safety checks.
pub(crate) fn cluster(sim: &Sim, watch: &Exclusive, checks: Checks) -> Cluster {
    let (of, watch) = (sim.clone(), watch.clone());
    Cluster::new(sim, move |builder, _| {
        let (of, watch) = (of.clone(), watch.clone());
        builder.register_with(move |_| Guarded::new(&of, &watch)).configure(|config| config.checks = checks)
    })
}

/// Records each of its exclusive turns with the checker.
pub(crate) struct Guarded {
    turns: u64,
    watch: Exclusive,
    random: Random,
}

impl Guarded {
    pub(crate) fn new(sim: &Sim, watch: &Exclusive) -> Self {
        Self { turns: 0, watch: watch.clone(), random: sim.random() }
    }
}

impl Actor for Guarded {}

#[actor(idle = "5s")]
impl Guarded {
    /// Takes a while, inside of which nobody else may begin; gives the activation's epoch and its number of turns.
    pub async fn touch(&mut self, cx: &Cx) -> (u64, u64) {
        let inside = self.watch.enter(&cx.id().to_string(), cx.node_name(), cx.epoch());
        self.turns += 1;
        let millis = self.random.within(&(Duration::ZERO..Duration::from_millis(30)));
        tokio::time::sleep(millis).await;
        drop(inside);
        (cx.epoch(), self.turns)
    }
}
