//! Homes: stay where they are, and draw players to them.

use greenroom::prelude::*;

use super::{Spot, Way};

/// Hears from players. It is where it was opened for as long as the run takes.
#[derive(Default, Actor)]
pub struct Home {}

#[actor(kind = "presence_home", placement = "local", idle = "1h")]
impl Home {
    /// Begins, on the node of its caller.
    pub async fn open(&self) {}

    /// Hears from a player. How far he is.
    pub async fn hear(&self, cx: &Cx, from: Spot) -> Way {
        from.way(Spot::of(cx))
    }
}
