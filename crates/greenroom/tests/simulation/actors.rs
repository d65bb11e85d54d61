//! The actors of the scenarios.

use std::time::Duration;

use greenroom::prelude::*;
use greenroom_sim::{Exclusive, Random, Sim};

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
